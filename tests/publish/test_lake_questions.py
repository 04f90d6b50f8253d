"""Questions that are ready, asked of rows that are few and known: none of them puts together what is apart."""

import pytest

from ssdrig.publish.lake import query

duckdb = pytest.importorskip("duckdb")


def answer(name: str, **rows: str) -> list[dict]:
    """What a question finds in tables of these rows, each as SQL."""
    with duckdb.connect() as connection:
        for table, sql in rows.items():
            connection.execute(f"CREATE TABLE {table} AS {sql}")
        return connection.sql(query.all_of()[name].sql).to_arrow_table().to_pylist()


def test_at_rest_holds_a_state_of_sleep_against_itself():
    """A plan of power states rests once in each of them, in one step."""
    seconds = """
        SELECT 'd' AS drive, 'r' AS run, 1 AS part, 'rest' AS step, NULL::BIGINT AS round, p.point,
            p.W AS power_mean_W, p.W AS energy_J,
            NULL::BIGINT AS read_ios, NULL::BIGINT AS write_ios, NULL::BIGINT AS trim_ios
        FROM (VALUES ('{"ps": 0}', 3.0::DOUBLE), ('{"ps": 4}', 0.1)) p(point, W), range(10)"""
    rows = answer("at-rest", second=seconds)
    answers = [(row["point"], row["seconds"], row["floor_W"], row["above_J"]) for row in rows]
    assert answers == [('{"ps": 0}', 10, 3.0, 0.0), ('{"ps": 4}', 10, 0.1, 0.0)]


def test_each_point_has_its_slowest_seconds():
    seconds = """
        SELECT 'd' AS drive, 'r' AS run, 1 AS part, 'load' AS step, NULL::BIGINT AS round, p.point, range AS second,
            p.ios AS read_ios, NULL::BIGINT AS write_ios, 1 AS read_p99_ns, NULL::BIGINT AS write_p99_ns,
            1.0 AS power_mean_W, 1.0 AS power_max_W, false AS partial
        FROM (VALUES ('{"qd": 1}', 100), ('{"qd": 32}', 9000)) p(point, ios), range(20)"""
    rows = answer("slowest-seconds", second=seconds)
    assert [row["point"] for row in rows] == ['{"qd": 1}'] * 5 + ['{"qd": 32}'] * 5


def test_write_amplifications_of_other_points_are_not_averaged():
    figures = """
        SELECT 'd' AS drive, 'r' AS run, 'e' AS export, 'load' AS step, p.point, p.wa, 0.1 AS wa_error,
            'steady' AS window_name, 1000.0 AS iops_mean, 5.0 AS energy_uJ_per_io
        FROM (VALUES ('{"read": 0}', 4.0::DOUBLE), ('{"read": 70}', 2.0)) p(point, wa)"""
    run = """
        SELECT 'r' AS run, 'e' AS export, 'p' AS plan, 7.0 AS op_percent, false AS raw_nand_assumed,
            true AS simulated"""
    rows = answer("wa-against-op", figure=figures, run=run)
    answers = [(row["point"], row["windows"], row["wa"]) for row in rows]
    assert answers == [('{"read": 0}', 1, 4.0), ('{"read": 70}', 1, 2.0)]


def test_drift_is_of_runs_that_did_the_same():
    runs = """
        SELECT * FROM (VALUES
            ('a', 'e', 7.0, '{"qd": 1, "seed": 1}', '1', 1), ('b', 'e', 7.0, '{"qd": 1, "seed": 2}', '2', 2),
            ('c', 'e', 25.0, '{"qd": 1, "seed": 2}', '2', 3), ('d', 'e', 7.0, '{"qd": 32, "seed": 2}', '2', 4))
            r(run, export, op_percent, params, firmware, t_utc),
            (SELECT 'p' AS plan, NULL AS variant, 100 AS tested_bytes, true AS simulated)"""
    figures = """
        SELECT 'drive' AS drive, f.run, 'e' AS export, 'load' AS step, NULL AS point, NULL::BIGINT AS round,
            'all' AS window_name, f.iops AS iops_mean, 1.0 AS clat_p99_us, 2.0 AS power_mean_W, 1.0 AS wa
        FROM (VALUES ('a', 100.0::DOUBLE), ('b', 90.0), ('c', 500.0), ('d', 900.0)) f(run, iops)"""
    rows = answer("drift-over-firmware", run=runs, figure=figures)
    assert [row["iops_percent"] for row in rows] == [0, -10, 0, 0]


def test_a_ratio_of_counters_is_of_the_polls_that_know_both():
    """A poll whose log with the NAND's counter failed counts for the host's bytes alone."""
    smart = """
        SELECT 'd' AS drive, t AS t_utc, 1.0 AS percentage_used, host AS host_written_bytes,
            nand AS nand_written_bytes, 0 AS media_errors, 0 AS unsafe_shutdowns
        FROM (VALUES (1, 0, NULL), (2, 1000, 3000), (3, 2000, 6000), (4, 9000, NULL)) p(t, host, nand)"""
    (row,) = answer("wear", smart=smart)
    assert (row["host_bytes"], row["nand_bytes"], row["wa"]) == (9000, 3000, 3.0)


def test_energy_by_second_keeps_what_lies_before_the_first_sample_of_a_second():
    """4 W for half a second before each sample, the first of which comes just behind a full second."""
    samples = """
        SELECT 'f' AS file, 'r' AS run, 1 AS part, '5V' AS rail, t AS t_ns, 500000000 AS dt_ns,
            4::FLOAT AS V, 1::FLOAT AS I, NULL::BIGINT AS lost, NULL::BIGINT AS gap_ns, NULL::DOUBLE AS gap_J
        FROM (VALUES (10100000000), (10600000000), (12100000000)) s(t)"""
    rows = answer("energy-by-second", sample=samples)
    answers = [(row["second"], row["samples"], round(row["energy_J"], 6)) for row in rows]
    assert answers == [(9, 0, 1.6), (10, 2, 2.4), (11, 0, 1.6), (12, 1, 0.4)]

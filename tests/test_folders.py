"""A run folder is data: whatever stands in run.json or review.json, no program is started, nothing is written outside
of the folder and nobody sees a traceback."""

import json
import random
import shutil

import folder_fuzz
import pytest

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 11))]
CASES = 200  # of each seed


@pytest.mark.parametrize("seed", SEEDS)
def test_an_altered_folder_starts_nothing_and_writes_nothing_outside(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    outside.mkdir()
    (outside / "bait").write_text("bait")
    inside.mkdir()
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR", "HOME"):
        (inside / name).mkdir()
        monkeypatch.setenv(name, str(inside / name))
    monkeypatch.setattr("tempfile.tempdir", str(inside / "TMPDIR"))
    monkeypatch.delenv("SSDRIG_INFLUX", raising=False)
    sources = {shape: folder_fuzz.folder_of(shape, inside / f"of-{shape}") for shape in folder_fuzz.SHAPES}
    sources["review"] = folder_fuzz.review_of(inside / "of-review")
    wrong: list = []
    codes: list[int] = []
    with folder_fuzz.stubbed(monkeypatch, wrong):
        for number in range(CASES):
            shape = rng.choice(sorted(sources))
            run = inside / "work" / f"{number}" / sources[shape].name
            shutil.copytree(sources[shape], run)
            files = [*run.rglob("run.json"), *run.rglob("review.json")]
            for _ in range(rng.choice([1, 1, 2, 5])):
                file = rng.choice(files)
                document = json.loads(file.read_text())
                at = rng.choice([*folder_fuzz.places(document), ("drive", "target"), ("drive", "power_off")])
                changed = folder_fuzz.altered(document, at, folder_fuzz.hostile(rng, outside))
                file.write_text(json.dumps(changed, ensure_ascii=True))
            words, found = folder_fuzz.words_of(rng, shape, run, inside / "out"), []
            codes.append(folder_fuzz.one(words, inside, found))
            wrong += [(number, shape, at, words[0], each) for each in found]
            shutil.rmtree(inside / "work")
    assert [path.name for path in outside.iterdir()] == ["bait"] and (outside / "bait").read_text() == "bait"
    assert not wrong, "\n".join(map(str, wrong[:40])) + f"\n{len(wrong)} in all"
    assert codes.count(folder_fuzz.STARTED) > 5 and codes.count(0) > 20  # what is not refused is tried, too

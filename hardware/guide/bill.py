"""The bill as a page: point at a row, and its parts light up on the board. One file, no network, no library."""

from html import escape

import assembly
import layout
import svg

STYLE = """body{font:13px sans-serif;margin:0;display:flex;gap:12px}
#board{position:sticky;top:0;flex:1 1 60%;align-self:flex-start} #board svg{width:100%;height:auto}
#list{flex:1 1 40%} table{border-collapse:collapse} td,th{padding:2px 6px;text-align:left;border-bottom:1px solid #ddd}
tr:hover,tr.held{background:#fde9c8} td:nth-child(2){max-width:22em;word-spacing:.2em}
.part{fill:#d3d3cd;stroke:#8f8f88;stroke-width:.6} .part.lit{fill:#f2a33a;stroke:#8a4b00;stroke-width:2}"""
SCRIPT = """const rows=[...document.querySelectorAll('tr[data-refs]')];
const light=row=>{const refs=new Set(row?row.dataset.refs.split(' '):[]);
for(const part of document.querySelectorAll('.part'))part.classList.toggle('lit',refs.has(part.id));};
let held=null;
for(const row of rows){row.onmouseenter=()=>light(row);row.onmouseleave=()=>light(held);
row.onclick=()=>{if(held)held.classList.remove('held');
held=held===row?null:row;if(held)held.classList.add('held');light(held||row);};}
"""


def part(ref):
    """A rectangle with the part's name as its id, and what it is as its title."""
    x0, y0, x1, y1 = assembly.body(ref)
    (a, b), (c, d) = assembly.front(x0, y0), assembly.front(x1, y1)
    where = svg.attributes(x=a, y=b, width=c - a, height=d - b)
    return f'<rect id="{ref}" class="part"{where}><title>{escape(f"{ref} {layout.PARTS[ref].value}")}</title></rect>'


def page(rows):
    """HTML of the bill's rows (dicts of bom.csv)."""
    board = [*assembly.empty(assembly.front), *map(part, assembly.parts())]
    high = assembly.front(0, assembly.place.HEIGHT)[1] + 14
    wide = 2 * assembly.EDGE_px + assembly.place.WIDTH * assembly.PX
    lines = []
    for row in rows:
        refs = f' data-refs="{escape(row["references"])}"' if row["references"] else ""
        cells = [row[name] for name in ("quantity", "references", "item", "manufacturer", "part_number", "package")]
        lines.append(f"<tr{refs}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("n", "parts", "what", "manufacturer", "number", "package"))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>ssdrig: bill and board</title>'
        f"<style>{STYLE}</style><div id=board>"
        + svg.page(
            wide, high, "Front of the board", [svg.text(16, 24, "Point at a row; click to keep it lit.", 14), *board]
        )
        + f"</div><div id=list><table><tr>{head}</tr>\n"
        + "\n".join(lines)
        + f"</table></div><script>{SCRIPT}</script></html>\n"
    )

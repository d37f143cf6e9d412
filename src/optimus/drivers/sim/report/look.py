"""How the page looks: one style sheet for light, dark and paper.

Schedulers have the colours of Okabe and Ito, which people with any colour vision can tell apart; the reference is grey,
so that what is compared with it stands out. Queues have the pale set of Paul Tol, made for areas with words on them.
"""

from __future__ import annotations

SCHEDULERS = 8
QUEUES = 9

_LIGHT = ("#5c6673", "#0072b2", "#d55e00", "#009e73", "#b8568f", "#b07d00", "#3a9bd9", "#6a51a3")
_DARK = ("#a3adba", "#4fb0f0", "#ff8a45", "#2fcf9d", "#e796c4", "#f0bd45", "#93d2f7", "#b8a2e8")
_FILLS = ("#77aadd", "#ee8866", "#44bb99", "#eedd88", "#ffaabb", "#99ddff", "#bbcc33", "#aaaa00", "#c4c8cf")


def _variables(names: str, colours: tuple[str, ...]) -> str:
    return "".join(f"--{names}{i}:{colour};" for i, colour in enumerate(colours))


_MARKS = "".join(f".s{i}{{color:var(--s{i})}}.hide{i} .s{i}{{display:none}}" for i in range(SCHEDULERS)) + "".join(
    f".q{i}{{color:var(--q{i})}}" for i in range(QUEUES)
)

_COLOURS = f"""
:root{{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#5a6470;--faint:#8b95a1;--rule:#e3e6ea;--wash:#f6f7f9;
--good:#1a7f78;--bad:#b35806;{_variables("s", _LIGHT)}{_variables("q", _FILLS)}}}
@media (prefers-color-scheme:dark){{:root{{--paper:#14171b;--ink:#e8eaed;--soft:#aab2bd;--faint:#7d8793;--rule:#2b3138;
--wash:#1b1f25;--good:#4cc3b8;--bad:#f0a05a;{_variables("s", _DARK)}}}}}
"""

_RULES = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.55 Inter,ui-sans-serif,system-ui,-apple-system,
"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-feature-settings:"cv11","ss03"}
main,header.top{max-width:1168px;margin:0 auto;padding:0 24px}
header.top{padding-top:48px}
h1{font-size:30px;line-height:1.2;letter-spacing:-.02em;font-weight:680;margin:0 0 6px}
h2{font-size:20px;letter-spacing:-.01em;font-weight:660;margin:56px 0 4px}
h3{font-size:15px;font-weight:620;margin:0 0 2px}
p{margin:4px 0 12px;max-width:72ch}
.scene,.about,figcaption,.note{color:var(--soft)}
.about{margin-bottom:18px}
p.scene,p.about{max-width:110ch}
figcaption,.note{font-size:13px;line-height:1.45;margin:2px 0 8px;max-width:78ch}
nav{position:sticky;top:0;z-index:2;background:color-mix(in srgb,var(--paper) 92%,transparent);
backdrop-filter:blur(6px);border-bottom:1px solid var(--rule);margin-top:20px}
nav div{max-width:1168px;margin:0 auto;padding:8px 24px;display:flex;gap:6px 10px;flex-wrap:wrap;align-items:center}
nav .tabs{padding:8px 24px 0;gap:2px 18px;font-size:14px}
a.tab{color:var(--soft);text-decoration:none;padding:2px 0 4px;border-bottom:2px solid transparent}
a.tab:hover{color:var(--ink)}
a.tab[aria-current]{color:var(--ink);font-weight:600;border-bottom-color:var(--ink)}
nav+main>.scroll:first-child{margin-top:26px}
nav .hint{color:var(--faint);font-size:12.5px;margin-left:auto}
button.chip{font:inherit;font-size:13.5px;font-weight:560;color:var(--ink);background:none;border:1px solid var(--rule);
border-radius:99px;padding:2px 12px 2px 9px;cursor:pointer;display:inline-flex;gap:7px;align-items:center}
button.chip i,.key i,td i.mark{width:10px;height:10px;border-radius:50%;background:currentColor;display:inline-block}
button.chip .swatch{display:inline-flex}
button.chip[aria-pressed=false]{opacity:.4;text-decoration:line-through}
td i.mark{width:9px;height:9px;margin-right:8px}
.claims{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:20px;margin:26px 0 32px}
.claim{border:1px solid var(--rule);border-radius:12px;padding:18px 20px 14px;background:var(--wash)}
.claim{color:var(--ink)!important}
@media (min-width:760px){.claim:only-child{display:grid;grid-template-columns:1fr 1fr;align-items:center}}
.claim .vs{color:var(--soft);font-size:13.5px;margin:0}
.claim .big{font-size:38px;line-height:1.15;font-weight:690;letter-spacing:-.025em;margin:2px 0 0;
font-variant-numeric:tabular-nums}
.claim .big small{font-size:15px;font-weight:500;letter-spacing:0;color:var(--soft);margin-left:6px}
.claim .said{margin:2px 0 10px;font-size:14px}
.checks{list-style:none;margin:0;padding:0;font-size:13px;color:var(--soft);font-variant-numeric:tabular-nums}
.checks li{padding-left:20px;position:relative}
.checks li::before{content:"✓";position:absolute;left:0;color:var(--good);font-weight:700}
.checks li.no::before{content:"✗";color:var(--bad)}
.good{color:var(--good)}.bad{color:var(--bad)}.faint{color:var(--faint)}.strong{font-weight:580}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 40px;margin:14px 0}
@media (max-width:900px){.pair{grid-template-columns:minmax(0,1fr)}}
figure{margin:14px 0 22px}
.pair figure{margin:0;display:grid;grid-row:span 3;grid-template-rows:subgrid;row-gap:0;align-items:start}
.pair figure svg{margin-bottom:26px}
figcaption:empty{margin:0}
svg{display:block;width:100%;height:auto;overflow:visible}
@media (max-width:800px){svg.wide{min-width:760px}figure:has(svg.wide){overflow-x:auto}}
svg text{font-size:12px;font-variant-numeric:tabular-nums;fill:var(--soft)}
svg .small{font-size:9.5px}
svg .title{fill:var(--faint)}
svg .group,svg .value{fill:var(--ink)}
svg .group{font-weight:580}
svg .good-name{fill:var(--good)}svg .bad-name{fill:var(--bad)}
svg .name{fill:currentColor;font-weight:620;paint-order:stroke;stroke:var(--paper);stroke-width:4px;
stroke-linejoin:round}
svg .inside{fill:#1b1f24;font-weight:560}
svg .axis{stroke:var(--faint);stroke-width:1}
svg .grid{stroke:var(--rule);stroke-width:1}
svg .zero{stroke:var(--soft);stroke-width:1}
svg .rule{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3;fill:none}
svg .shade{fill:var(--bad);opacity:.06}
svg .line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}
svg .band{fill:currentColor;stroke:var(--paper);stroke-width:.5}
svg .run{fill:currentColor}svg .run:hover{opacity:.7}
svg .lane{fill:none;stroke:currentColor}
svg .range{stroke:currentColor;stroke-width:2.5;opacity:.45;stroke-linecap:round}
svg .dot{fill:currentColor}
svg .hollow{fill:var(--paper);stroke:currentColor;stroke-width:1.6}
svg .hit{fill:transparent}
svg .good-bar{fill:var(--good)}svg .bad-bar{fill:var(--bad)}svg .even-bar{fill:var(--faint)}
svg .waits{stroke:var(--faint);stroke-width:1;opacity:.7}
svg .cross{stroke:var(--faint);stroke-width:1;pointer-events:none}
.scroll{overflow-x:auto;margin:8px 0 4px}
.pair .scroll{margin-top:0!important}
.scroll+.scroll,.note+.scroll{margin-top:30px}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;line-height:1.35;width:100%}
caption{text-align:left;font-weight:620;font-size:15px;padding:0 0 6px}
th,td{padding:6px 0 6px 18px;text-align:right;white-space:nowrap;vertical-align:baseline}
th:first-child,td:first-child{padding-left:0}
th{font-weight:500;color:var(--soft);font-size:12.5px;border-bottom:1px solid var(--faint);vertical-align:bottom}
th span{color:var(--faint);display:block;font-size:11.5px}
abbr{text-decoration:underline dotted var(--faint);text-underline-offset:3px;cursor:help}
td{border-bottom:1px solid var(--rule)}
tr.cont td{border-bottom-color:transparent}
.left{text-align:left}
td.left{max-width:26ch;overflow:hidden;text-overflow:ellipsis}
.key{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px;color:var(--soft);margin:4px 0 2px}
.key span{display:inline-flex;gap:6px;align-items:center}
.key i{border-radius:3px}
details{margin:14px 0}
summary{cursor:pointer;font-weight:580;padding:4px 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:6px 28px;font-size:14px;margin:12px 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
footer{max-width:1168px;margin:56px auto 40px;padding:14px 24px 0;color:var(--faint);font-size:13px}
#tip{position:fixed;pointer-events:none;z-index:3;background:var(--paper);border:1px solid var(--rule);
border-radius:8px;box-shadow:0 6px 24px rgba(0,0,0,.14);padding:7px 11px;
font-size:12.5px;font-variant-numeric:tabular-nums;display:none}
#tip b{font-weight:600;display:block;margin-bottom:2px}
#tip div{display:flex;gap:14px;justify-content:space-between;color:var(--ink)}
#tip i{display:inline-block;width:8px;height:8px;border-radius:50%;background:currentColor;margin-right:6px}
@media print{nav{display:none}section{break-inside:avoid-page}body{font-size:12px}}
"""

STYLE = _COLOURS + _RULES + _MARKS

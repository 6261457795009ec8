"""Fleet by node: each place has a heading and its workers; the rail counts who works there."""

from dataclasses import replace

from engine.messages.results import EngineView
from tests.support.fleets import rows_of
from tests.support.world import NOW, many
from tui.ink import row_width, text_of
from tui.kit.rail import CELLS, rail
from tui.screens.fleet.page import Form, Order, Wish, lay_out, orders_of
from tui.words.scene import Scene

SITES = ("box/n2", "", "box/n1")


def _spread() -> EngineView:
    """Nine workers, on two nodes and on this machine in turn."""
    view = many(9)
    (run,) = view.runs
    (step,) = run.steps
    placed = [replace(w, site=SITES[at % 3]) for at, w in enumerate(step.workers)]
    return replace(view, runs=(replace(run, steps=(replace(step, workers=tuple(placed)),)),))


def _scene(view: EngineView) -> Scene:
    return Scene(view=view, run=view.runs[0], now=NOW, keys={})


def test_workers_stand_below_the_heading_of_their_node() -> None:
    scene = _scene(_spread())
    page = lay_out(scene, (120, 40), "port/worker_1", Wish(order=Order.NODE))
    assert page.form is Form.TABLE
    places = [piece for piece in page.pieces if piece.y < 12]
    heads = [(piece.y, piece.name.strip()) for piece in places if not piece.is_worker]
    assert heads[:3] == [(0, "this machine"), (4, "box/n1"), (8, "box/n2")]
    site_of = {worker.worker: worker.site for worker in scene.run.workers} if scene.run else {}
    assert [site_of[piece.name] for piece in places if piece.is_worker] == sorted(SITES * 3)
    assert all(row_width(row) <= 120 for row in rows_of(page, 120))


def test_the_order_by_node_is_offered_only_where_there_are_nodes() -> None:
    assert Order.NODE in orders_of(_spread().runs[0])
    assert Order.NODE not in orders_of(many(9).runs[0])


def test_the_rail_names_each_node_and_counts_who_works_there() -> None:
    rows = rail(_scene(_spread()), 60)
    said = text_of(rows)
    assert "box/n1" in said
    assert "of 3 busy" in said
    assert all(row_width(row) <= CELLS for row in rows)
    assert "NODES" not in text_of(rail(_scene(many(9)), 60))

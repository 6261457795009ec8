"""Open engines, plans and merges for consoles and programs.

Each name loads its room when it is first used, so a command loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.agents.registry import find_agents
    from engine.api.beginning import Beginnings, OfferedAgent, look_for_beginnings
    from engine.api.beside import files_beside, request_beside
    from engine.api.blaming import BlamedLines, blame
    from engine.api.engine import Engine, Run
    from engine.api.errors_out import plain_errors
    from engine.api.exported import exported_file, open_exported
    from engine.api.exporting import bundle_run, export_run
    from engine.api.helped import EngineHelp, own_help
    from engine.api.histories import OpenHistory, open_history, read_braid
    from engine.api.journals import journals_at
    from engine.api.looking import (
        check_sites,
        check_sparse_checkouts,
        machine_rows,
        raw_output,
        settings_told,
        used_today,
        weigh,
    )
    from engine.api.plans import is_manifest, plan_for_prompts, plan_from, plans_in, read_inside
    from engine.api.publishing import Publishing, Wanted, pull_request
    from engine.api.reaching import attach, engine_key, look, reach
    from engine.api.replaying import open_replay
    from engine.api.sites import (
        LOCAL_CLUSTER,
        SiteEntry,
        describe_sites,
        end_cluster,
        start_cluster,
        try_site,
    )
    from engine.api.tried import open_try
    from engine.api.trying import end_try, keep_try, try_worker
    from engine.git.publishing import is_request
    from engine.git.sample import make_repository
    from engine.history.braid import Braid, StrandTurn, TurnKind
    from engine.history.seam import Hit, Query
    from engine.messages.merging import (
        CandidateHunkView,
        CandidateRow,
        CandidateTable,
        CommitView,
        ConflictFileView,
        ConflictView,
        HunkView,
        LandingOrder,
        LineView,
        MergedFileView,
        PieceView,
        PlannedLanding,
        ProposalView,
        Wove,
    )
    from engine.messages.questions import RunSummary
    from engine.plan.describe import describe
    from engine.plan.from_prompts import plan_from_prompts
    from engine.plan.make import PlanDefaults
    from engine.plan.model import PermissionMode, Permissions, Plan, PlannedStep, RetryMode
    from engine.plan.starter import ProjectFacts, init_manifest
    from engine.port.diff_port import Beside, DiffPort
    from engine.port.port import EnginePort
    from engine.port.public import event_json, view_json
    from engine.port.review_port import ReviewPort
    from engine.review.actions import side_actions
    from engine.review.alone.local import MergeReview
    from engine.review.alone.other_merges import BranchMerge, ToolFiles, ToolMerge
    from engine.review.alone.own import OwnMerge
    from engine.review.preview import OpenMerge, open_merge
    from engine.review.queue import LandingEnd, land_batch, land_queue, landing_end
    from engine.review.trying import OpenTry, TakenBack

_HOMES = {
    "engine.agents.registry": "find_agents",
    "engine.api.beginning": "Beginnings OfferedAgent look_for_beginnings",
    "engine.api.blaming": "BlamedLines blame",
    "engine.api.engine": "Engine Run",
    "engine.api.errors_out": "plain_errors",
    "engine.api.exported": "exported_file open_exported",
    "engine.api.exporting": "bundle_run export_run",
    "engine.api.histories": "OpenHistory open_history read_braid",
    "engine.api.journals": "journals_at",
    "engine.history.braid": "Braid StrandTurn TurnKind",
    "engine.history.seam": "Hit Query",
    "engine.api.looking": "check_sites check_sparse_checkouts machine_rows raw_output "
    "settings_told used_today weigh",
    "engine.api.tried": "open_try",
    "engine.api.trying": "end_try keep_try try_worker",
    "engine.git.sample": "make_repository",
    "engine.api.plans": "is_manifest plan_for_prompts plan_from plans_in read_inside",
    "engine.api.publishing": "Publishing Wanted pull_request",
    "engine.api.reaching": "attach engine_key look reach",
    "engine.api.replaying": "open_replay",
    "engine.api.sites": "LOCAL_CLUSTER SiteEntry describe_sites end_cluster start_cluster try_site",
    "engine.messages.merging": "CandidateHunkView CandidateRow CandidateTable CommitView"
    " ConflictFileView ConflictView HunkView LandingOrder LineView MergedFileView"
    " PieceView PlannedLanding ProposalView Wove",
    "engine.messages.questions": "RunSummary",
    "engine.plan.describe": "describe",
    "engine.plan.from_prompts": "plan_from_prompts",
    "engine.plan.make": "PlanDefaults",
    "engine.plan.model": "PermissionMode Permissions Plan PlannedStep RetryMode",
    "engine.plan.starter": "ProjectFacts init_manifest",
    "engine.port.public": "event_json view_json",
    "engine.review.actions": "side_actions",
    "engine.review.alone.other_merges": "BranchMerge ToolFiles ToolMerge",
    "engine.review.alone.local": "MergeReview",
    "engine.review.alone.own": "OwnMerge",
    "engine.review.preview": "OpenMerge open_merge",
    "engine.review.queue": "LandingEnd land_batch land_queue landing_end",
    "engine.review.trying": "OpenTry TakenBack",
    "engine.port.port": "EnginePort",
    "engine.port.diff_port": "Beside DiffPort",
    "engine.port.review_port": "ReviewPort",
    "engine.api.beside": "files_beside request_beside",
    "engine.api.helped": "EngineHelp own_help",
    "engine.git.publishing": "is_request",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "LOCAL_CLUSTER",
    "Beginnings",
    "Beside",
    "BlamedLines",
    "Braid",
    "BranchMerge",
    "CandidateHunkView",
    "CandidateRow",
    "CandidateTable",
    "CommitView",
    "ConflictFileView",
    "ConflictView",
    "DiffPort",
    "Engine",
    "EngineHelp",
    "EnginePort",
    "Hit",
    "HunkView",
    "LandingEnd",
    "LandingOrder",
    "LineView",
    "MergeReview",
    "MergedFileView",
    "OfferedAgent",
    "OpenHistory",
    "OpenMerge",
    "OpenTry",
    "OwnMerge",
    "PermissionMode",
    "Permissions",
    "PieceView",
    "Plan",
    "PlanDefaults",
    "PlannedLanding",
    "PlannedStep",
    "ProjectFacts",
    "ProposalView",
    "Publishing",
    "Query",
    "RetryMode",
    "ReviewPort",
    "Run",
    "RunSummary",
    "SiteEntry",
    "StrandTurn",
    "TakenBack",
    "ToolFiles",
    "ToolMerge",
    "TurnKind",
    "Wanted",
    "Wove",
    "attach",
    "blame",
    "bundle_run",
    "check_sites",
    "check_sparse_checkouts",
    "describe",
    "describe_sites",
    "end_cluster",
    "end_try",
    "engine_key",
    "event_json",
    "export_run",
    "exported_file",
    "files_beside",
    "find_agents",
    "init_manifest",
    "is_manifest",
    "is_request",
    "journals_at",
    "keep_try",
    "land_batch",
    "land_queue",
    "landing_end",
    "look",
    "look_for_beginnings",
    "machine_rows",
    "make_repository",
    "open_exported",
    "open_history",
    "open_merge",
    "open_replay",
    "open_try",
    "own_help",
    "plain_errors",
    "plan_for_prompts",
    "plan_from",
    "plan_from_prompts",
    "plans_in",
    "pull_request",
    "raw_output",
    "reach",
    "read_braid",
    "read_inside",
    "request_beside",
    "settings_told",
    "side_actions",
    "start_cluster",
    "try_site",
    "try_worker",
    "used_today",
    "view_json",
    "weigh",
]


def __getattr__(name: str) -> Any:
    """Bring a name's room in when the name is first used (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)

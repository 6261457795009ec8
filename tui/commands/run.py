"""`plait run`: a plan or prompts, headless or in the console."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

import anyio

from engine.api import (
    EnginePort,
    PermissionMode,
    Permissions,
    Plan,
    PlanDefaults,
    attach,
    is_manifest,
    plan_for_prompts,
    plan_from,
    settings_told,
    weigh,
)
from engine.errors import PlanError
from engine.messages.questions import StartPlan
from engine.policies import LAWS
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    add_repo,
    in_loop,
    put,
    say,
)
from tui.commands.bundling import Bundling
from tui.commands.following import Following, carry
from tui.commands.streams import is_terminal
from tui.words.clean import clean


def _policies() -> list[str]:
    return [f"{word}:N" if law.is_counted else word for word, law in LAWS.items()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take what to run, with whom, and how to watch it."""
    add_repo(parser)
    parser.add_argument("what", nargs="?", metavar="PLAN|PROMPT|-", help="a manifest, or a prompt")
    parser.add_argument("-p", dest="prompts", action="append", default=[], metavar="PROMPT")
    parser.add_argument("-a", dest="agents", action="append", default=[], metavar="AGENT[:N]")
    parser.add_argument(
        "--models", metavar="A,B,C", help="for every agent, one candidate with each of these models"
    )
    parser.add_argument(
        "-n",
        dest="replicas",
        type=int,
        metavar="N",
        help="candidates of each agent that has no number",
    )
    parser.add_argument("--pipeline", help="which pipeline of the manifest")
    parser.add_argument("--policy", help="|".join(_policies()))
    parser.add_argument("--base", metavar="REV|WORKTREE")
    parser.add_argument("--target", metavar="BRANCH")
    parser.add_argument(
        "--check", metavar="CMD", help="the command that must pass before a change lands"
    )
    parser.add_argument("--timeout-minutes", type=float)
    parser.add_argument(
        "--auto-merge",
        action="store_true",
        default=None,
        help="land each change whose step succeeded, without a review",
    )
    parser.add_argument(
        "--permissions",
        choices=[str(mode) for mode in PermissionMode],
        help="what happens to permission requests, in every step: auto allows all inside the "
        "sandbox, ask asks you, rules applies your rules and asks you about the rest",
    )
    for word in ("allow", "deny"):
        parser.add_argument(
            f"--{word}",
            action="append",
            default=[],
            metavar="PATTERN",
            help=f"{word} requests that match, such as 'Bash(git *)', without asking; implies "
            "--permissions rules",
        )
    parser.add_argument("--headless", action="store_true", help="run without the console")
    parser.add_argument("--json", action="store_true", help="NDJSON events on stdout")
    parser.add_argument(
        "--detach", action="store_true", help="leave the run running and print its id"
    )
    parser.add_argument(
        "--on-question",
        choices=("fail", "deny", "wait"),
        default="wait",
        help="what a headless run does when an agent asks (default: wait for `plait answer`)",
    )
    parser.add_argument(
        "--bundle",
        type=Path,
        metavar="FILE",
        help="when the run ends for any reason, write all its branches and attempts into one "
        "git bundle that you can fetch elsewhere",
    )
    parser.add_argument("--yes", action="store_true", help="start without asking for confirmation")


def run(args: argparse.Namespace) -> int:
    """Make the plan, then run it where it was asked for."""
    if args.bundle and args.detach:
        raise PlanError(
            "a detached run cannot write a bundle when it ends",
            hint="Leave out --detach, or wait for the run and `plait export` it.",
        )
    plan = make(args)
    bundling = Bundling(args.repo, plan, args.bundle) if args.bundle else None
    if bundling:
        bundling.check()
    if not args.yes and not _is_wanted(args.repo, plan):
        say("nothing was started")
        return EXIT_FAILED
    return in_loop(partial(_run, args, plan, bundling))


def _is_wanted(repo: str, plan: Plan) -> bool:
    """Ask whether to start, where a human sits who has something to weigh."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    weighed = anyio.run(weigh, repo, plan)
    if not weighed:
        return True
    for sentence in (*weighed, *anyio.run(settings_told, repo, plan)):
        say(f"{clean(sentence)}")
    sys.stderr.write("start? [Y/n] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    return answer != "" and answer.strip().casefold() in {"", "y", "yes"}


async def _run(args: argparse.Namespace, plan: Plan, bundling: Bundling | None) -> int:
    if args.detach:
        return await _detached(args.repo, plan)
    begun = bundling.begun if bundling else str
    is_shown = not (args.headless or args.json) and is_terminal()
    if is_shown:
        from tui.commands.console import open_console  # noqa: PLC0415  a headless run needs none of it

        act = partial(open_console, args.repo, plan=plan, begun=begun)
    else:

        async def begin(port: EnginePort) -> str:
            return begun(await port.ask(StartPlan(plan)))

        following = Following(is_json=args.json, on_question=args.on_question)
        act = partial(carry, args.repo, begin, following)
    return await (bundling.after(act, goes_on=is_shown) if bundling else act())


def make(args: argparse.Namespace) -> Plan:
    """The plan of a command line: an existing file or *.yaml is one, anything else is a prompt."""
    defaults = PlanDefaults(
        policy=args.policy,
        check=args.check,
        auto_merge=args.auto_merge,
        target=args.target,
        base=args.base,
        permissions=_permissions(args),
        timeout_minutes=args.timeout_minutes,
    )
    prompts = list(args.prompts)
    text = _text_of(args.what)
    source: Path | str | None = None
    if text is not None and is_manifest(text):
        _refuse_said(args, "these options")
        source = f"{text}\n"
    elif text is not None:
        prompts.append(text)
    elif args.what is not None or not prompts:
        source = Path(args.what or "plait.yaml")
        _refuse_mixed(args, source)
    if source is not None:
        return plan_from(source, folder=Path.cwd(), pipeline=args.pipeline, defaults=defaults)
    return plan_for_prompts(
        prompts,
        args.agents,
        folder=Path.cwd(),
        models=() if args.models is None else args.models.split(","),
        replicas=args.replicas,
        defaults=defaults,
    )


def _permissions(args: argparse.Namespace) -> Permissions | None:
    """Return what the command line says of permissions; None where it says nothing."""
    has_rules = bool(args.allow or args.deny)
    if not has_rules and args.permissions is None:
        return None
    mode = PermissionMode(args.permissions or PermissionMode.RULES)
    if has_rules and mode is not PermissionMode.RULES:
        raise PlanError(
            f"--permissions {mode} uses no rules, so --allow and --deny would be ignored",
            hint="Leave out --permissions, or use --permissions rules.",
        )
    if mode is PermissionMode.RULES and not has_rules:
        raise PlanError(
            "--permissions rules needs at least one --allow or --deny",
            hint="To use the rules of the manifest, leave out --permissions.",
        )
    return Permissions(mode=mode, allow=tuple(args.allow), deny=tuple(args.deny))


def _text_of(what: str | None) -> str | None:
    """Return the text that was given, by stdin or as a word; None where a file is named."""
    if what == "-":
        return sys.stdin.read()
    return None if what is None or _is_plan(what) else what


def _refuse_mixed(args: argparse.Namespace, path: Path) -> None:
    """A manifest names its own prompts and agents: what is said beside it would not be heard."""
    _refuse_said(args, str(path))
    if not path.exists():
        raise PlanError(
            f"there is no {path}",
            hint="`plait init` writes one. Or give a prompt: `plait run TEXT`.",
        )


def _refuse_said(args: argparse.Namespace, plan: str) -> None:
    said = {"-p": args.prompts, "-a": args.agents, "--models": args.models, "-n": args.replicas}
    given = [option for option, value in said.items() if value]
    if given:
        raise PlanError(
            f"{plan} is a plan, so {' and '.join(given)} would be ignored",
            hint="Give either a plan or prompts.",
        )


def _is_plan(what: str) -> bool:
    return "\n" not in what and (what.endswith((".yaml", ".yml")) or os.path.isfile(what))  # noqa: PTH113  any text may come, Path refuses some


async def _detached(repo: str, plan: Plan) -> int:
    async with attach(repo) as port:
        run = await port.ask(StartPlan(plan))
    put(run)
    say(f"`plait attach` opens the console; `plait status {run}` shows its progress")
    return EXIT_OK

"""Count what the agents of each login used on a day, and hold a login that is refused.

Every engine of a user writes into the same files, one for each login and day, and reads what the
others wrote: a login has one allowance, whichever run its agents work for. An entry says what one
attempt has used in all, so one that is written twice, after a crash for example, counts once.
"""

import json
import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from engine.agents.logins import identity_of_login
from engine.agents.records import count_of, number_of, read_record, text_of
from engine.clock import Clock
from engine.core.state import Hold
from engine.ids import AttemptId
from engine.limits import Dimension, LimitHit
from engine.messages.results import LoginUse, LoginView
from engine.phases import StopCause
from engine.plan.model import AgentChoice
from engine.private import private_folder

KEPT_DAYS = 7
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One attempt's usage in all, and before the day of the entry; None is unknown."""

    attempt: str
    usd: float | None = None
    tokens: int | None = None
    usd_before: float = 0.0
    tokens_before: int = 0


@dataclass
class _Page:
    """One login on one day."""

    day: date
    file: Path
    read_to: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)
    unwritten: list[dict[str, Any]] = field(default_factory=list)
    refused_until: float = 0.0

    def take(self, line: bytes, *, own: Container[str]) -> None:
        """Take in a line that another engine wrote; ignore a damaged one."""
        told = read_record(line) or {}
        self.refused_until = max(self.refused_until, number_of(told.get("refused_until")) or 0.0)
        attempt = text_of(told.get("attempt"))
        if attempt and attempt not in own:
            self.entries[attempt] = Entry(
                attempt=attempt,
                usd=number_of(told.get("usd")),
                tokens=count_of(told.get("tokens")),
                usd_before=number_of(told.get("usd_before")) or 0.0,
                tokens_before=count_of(told.get("tokens_before")) or 0,
            )

    def use(self) -> LoginUse:
        """Return the sums; usage that an attempt did not report is unknown, not zero."""
        entries = self.entries.values()
        return LoginUse(
            usd=sum(e.usd - e.usd_before for e in entries if e.usd is not None),
            tokens=sum(e.tokens - e.tokens_before for e in entries if e.tokens is not None),
            attempts=len(self.entries),
            without_usd=sum(e.usd is None for e in entries),
            without_tokens=sum(e.tokens is None for e in entries),
        )


class Ledger:
    """The logins of one engine's agents, as far as they are known to it.

    Attributes:
        observers: Called when a login may be held, or no longer is.
    """

    def __init__(
        self, environ: Mapping[str, str], *, folder: Path, place: Path, clock: Clock
    ) -> None:
        """Start without any knowledge.

        Args:
            environ: The user's own, which says by what agents log in.
            folder: Where all engines of the user keep such files.
            place: What this engine works for: a login with no vendor is known there only.
            clock: The time.
        """
        self._environ = environ
        self._folder = folder
        self._place = place
        self._clock = clock
        self._keys: dict[str, str] = {}
        self._pages: dict[str, _Page] = {}
        self._left: list[_Page] = []
        self._own: dict[str, Entry] = {}
        self._writing = anyio.Lock()
        self.observers: list[Callable[[], None]] = []

    # ------------------------------------------------------------------ what is known

    def use(self, choice: AgentChoice) -> LoginUse:
        """Return this login's usage today."""
        page = self._page(choice, self._today())
        return page.use() if page is not None else LoginUse()

    def hold(self, choice: AgentChoice) -> Hold | None:
        """Return until when no agent of this login may begin, if anything stands in the way."""
        page = self._page(choice, self._today())
        if page is None:
            return None
        if (hit := self._hit(choice, page)) is not None:
            reason = f"the day's budget of {choice.name} is spent: {_words(hit)}"
            return Hold(until=self._midnight(), cause=StopCause.BUDGET, reason=reason)
        is_refused = page.refused_until > self._clock.now()
        return Hold(until=page.refused_until) if is_refused else None

    def hit(self, choice: AgentChoice) -> LimitHit | None:
        """Return the day's budget if it is spent."""
        page = self._page(choice, self._today())
        return self._hit(choice, page) if page is not None else None

    def view(self, choice: AgentChoice, agents: tuple[str, ...]) -> LoginView:
        """Return a login as a console shows it."""
        hold = self.hold(choice)
        return LoginView(
            agents=agents,
            use=self.use(choice),
            budget_usd=choice.day_budget_usd,
            budget_tokens=choice.day_budget_tokens,
            held_until=hold.until if hold else None,
            reason=hold.reason if hold else "",
        )

    # ------------------------------------------------------------------ what is told

    def spend(
        self,
        choice: AgentChoice,
        attempt: AttemptId,
        *,
        at: float,
        usd: float | None,
        tokens: int | None,
    ) -> LimitHit | None:
        """Note an attempt's usage in all by that time; return the day's budget if it is spent."""
        day = datetime.fromtimestamp(at).astimezone().date()
        page = self._page(choice, day)
        if page is None:
            return None
        name = f"{self._place_name}/{attempt}"
        known = page.entries.get(name)
        entry = _grown(known or self._begun(name), usd=usd, tokens=tokens)
        self._own[name] = entry
        # A recording that is read again after midnight tells of yesterday, which is written down.
        if entry != known and day == page.day:
            page.entries[name] = entry
            page.unwritten.append(vars(entry))
            if self._hit(choice, page) is not None:
                self._tell()
        return self.hit(choice)

    def refuse(self, choice: AgentChoice, until: float) -> None:
        """Note that this login's vendor refuses it until then."""
        page = self._page(choice, self._today())
        if page is not None and page.refused_until < until:
            page.refused_until = until
            page.unwritten.append({"refused_until": until})
            self._tell()

    async def share(self, choices: Iterable[AgentChoice]) -> None:
        """Write down what is new here, and read what other engines wrote of these logins."""
        wanted = list(choices)
        # One exchange at a time: two would read the same stretch of a file.
        async with self._writing:
            before = [self.hold(choice) for choice in wanted]
            if any(choice.login not in self._keys for choice in wanted):
                await anyio.to_thread.run_sync(partial(self._know, wanted))
            for choice in wanted:
                self._page(choice, self._today())
            for page in (*self._left, *self._pages.values()):
                await self._exchange(page)
            self._left.clear()
        if [self.hold(choice) for choice in wanted] != before:
            self._tell()

    def _tell(self) -> None:
        for observer in list(self.observers):
            observer()

    # ------------------------------------------------------------------ pages and files

    def _know(self, choices: Iterable[AgentChoice]) -> None:
        for choice in choices:
            if choice.login not in self._keys:
                self._keys[choice.login] = self._key(choice)

    def _key(self, choice: AgentChoice) -> str:
        if choice.has_vendor:
            return identity_of_login(choice, self._environ)
        return sha256(f"{self._place}\0{choice.name}".encode()).hexdigest()[:16]

    def _page(self, choice: AgentChoice, day: date) -> _Page | None:
        """Return that day's page; a page older than today's is not read again."""
        key = self._keys.get(choice.login)
        if key is None:
            return None
        page = self._pages.get(key)
        if page is None or page.day < day:
            refused_until = page.refused_until if page else 0.0
            file = self._folder / key / f"{day.isoformat()}.ndjson"
            if page is not None:
                self._left.append(page)
            page = self._pages[key] = _Page(day=day, file=file, refused_until=refused_until)
        return page

    def _begun(self, name: str) -> Entry:
        """Return an attempt's first entry of a day: it may have used something before it."""
        last = self._own.get(name)
        if last is None:
            return Entry(attempt=name)
        return replace(last, usd_before=last.usd or 0.0, tokens_before=last.tokens or 0)

    async def _exchange(self, page: _Page) -> None:
        lines, page.unwritten = page.unwritten, []
        try:
            told = await anyio.to_thread.run_sync(_exchange, page.file, lines, page.read_to)
        except OSError:  # a full disk for example: what is known here still holds here
            page.unwritten = [*lines, *page.unwritten]
            return
        page.read_to += len(told)
        for line in told.splitlines():
            page.take(line, own=self._own)

    # ------------------------------------------------------------------ days and budgets

    @property
    def _place_name(self) -> str:
        return sha256(os.fsencode(self._place)).hexdigest()[:10]

    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock.now()).astimezone().date()

    def _midnight(self) -> float:
        return datetime.combine(self._today() + timedelta(days=1), time()).timestamp()

    @staticmethod
    def _hit(choice: AgentChoice, page: _Page) -> LimitHit | None:
        if choice.day_budget_usd is None and choice.day_budget_tokens is None:
            return None
        use = page.use()
        if choice.day_budget_usd is not None and use.usd >= choice.day_budget_usd:
            hit = choice.day_budget_usd, use.usd, "USD a day"
        elif choice.day_budget_tokens is not None and use.tokens >= choice.day_budget_tokens:
            hit = float(choice.day_budget_tokens), float(use.tokens), "tokens a day"
        else:
            return None
        return LimitHit(dimension=Dimension.BUDGET, allowed=hit[0], seen=hit[1], unit=hit[2])


def logins_of(choices: Iterable[AgentChoice]) -> dict[str, AgentChoice]:
    """Return one choice per login; of several budgets for one login the least counts."""
    found: dict[str, AgentChoice] = {}
    for choice in choices:
        known = found.get(choice.login, choice)
        found[choice.login] = replace(
            known,
            day_budget_usd=_least(known.day_budget_usd, choice.day_budget_usd),
            day_budget_tokens=_least(known.day_budget_tokens, choice.day_budget_tokens),
        )
    return found


def _least(one: _Number | None, other: _Number | None) -> _Number | None:
    given = [number for number in (one, other) if number is not None]
    return min(given) if given else None


def _words(hit: LimitHit) -> str:
    return f"{hit.seen:g} of {hit.allowed:g} {hit.unit}"


def _grown(entry: Entry, *, usd: float | None, tokens: int | None) -> Entry:
    """Return the entry with these totals; a recording read again repeats smaller ones."""
    return replace(
        entry,
        usd=entry.usd if usd is None else max(usd, entry.usd or 0.0),
        tokens=entry.tokens if tokens is None else max(tokens, entry.tokens or 0),
    )


def _exchange(file: Path, lines: list[dict[str, Any]], read_to: int) -> bytes:
    """Write these lines; the whole lines that stand behind what was read before."""
    if lines:
        _append(file, lines)
    try:
        with file.open("rb") as told:
            told.seek(read_to)
            data = told.read()
    except FileNotFoundError:
        return b""
    return data[: data.rfind(b"\n") + 1]


def _append(file: Path, lines: list[dict[str, Any]]) -> None:
    """Append one write to the file: entries of other engines neither mix nor get lost."""
    is_new = not file.parent.is_dir()
    private_folder(file.parent)
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab", buffering=0) as out:
        out.write(data)
    if not is_new:
        _forget_old(file)


def _forget_old(file: Path) -> None:
    oldest = (date.fromisoformat(file.stem) - timedelta(days=KEPT_DAYS)).isoformat()
    for other in file.parent.glob("*.ndjson"):
        if other.stem < oldest:
            other.unlink(missing_ok=True)

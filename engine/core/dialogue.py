"""Carry words between a running agent and its human, and set its badges meanwhile."""

from dataclasses import replace

from engine.core import facts as f
from engine.core.effects import (
    ChangeLimits,
    FreezeAttempt,
    HoldClocks,
    SendAnswer,
    SendInterrupt,
    SendSteer,
    ThawAttempt,
)
from engine.core.state import HumanWords, Worker
from engine.core.turn import CoreTurn
from engine.messages.asked import AnswerScope, KeptAnswer, Question
from engine.messages.events import (
    Answered,
    Asked,
    ChangeSeen,
    Delivery,
    IsolationViolated,
    RateLimitMet,
    Steered,
)
from engine.messages.results import Badge
from engine.phases import Phase


def agent_asked(turn: CoreTurn, w: Worker, fact: f.AgentAsked) -> None:
    """Await a human: the clocks stand still."""
    asked = w.attempt.questions
    known = {q.id for q in asked} | {said.question for said in w.attempt.said}
    if w.phase is not Phase.RUNNING or fact.question.id in known:
        return
    if not asked:
        turn.effects.append(HoldClocks(**w.who, is_held=True))
    attempt = replace(w.attempt, questions=(*asked, fact.question))
    w = turn.change(replace(w, attempt=attempt, badges=w.badges | {Badge.ASKS}))
    turn.publish(Asked(**w.told, question=fact.question))
    kept = (rule for rule in reversed(turn.state.rules) if _answers(rule, w, fact.question))
    if (rule := next(kept, None)) is not None:
        _answer_by_rule(turn, w, fact.question.id, rule, at=fact.at)


def human_answered(turn: CoreTurn, w: Worker, fact: f.HumanAnswered) -> None:
    """Tell the agent, and let its clocks go on; others too, where the answer is for the run."""
    asked = next((q for q in w.attempt.questions if q.id == fact.question), None)
    if asked is None:
        return
    w = _withdraw(turn, w, fact.question)
    answer = HumanWords(text=fact.answer, question=fact.question)
    turn.change(replace(w, attempt=replace(w.attempt, said=(*w.attempt.said, answer))))
    turn.effects.append(SendAnswer(**w.who, question=fact.question, answer=fact.answer))
    turn.publish(Answered(**w.told, question=fact.question, answer=fact.answer, by=fact.by))
    scope = fact.scope or (AnswerScope.RUN if fact.is_for_run else None)
    if scope is not None and asked.is_permission:
        _keep(turn, w, asked, replace(fact, scope=scope))


def _keep(turn: CoreTurn, w: Worker, asked: Question, fact: f.HumanAnswered) -> None:
    """Keep an answer, and give it to those who wait for the same."""
    places = {AnswerScope.WORKER: str(w.id), AnswerScope.STEP: w.id.step}
    scope = fact.scope or AnswerScope.RUN
    rule = KeptAnswer(
        number=turn.state.rules_made + 1,
        answer=fact.answer,
        scope=scope,
        where=places.get(scope, ""),
        asked=asked.text,
        pattern=fact.pattern,
    )
    turn.state = replace(turn.state, rules=(*turn.state.rules, rule), rules_made=rule.number)
    waiting = [
        (other.id, q.id)
        for other in turn.state.workers.values()
        for q in other.attempt.questions
        if _answers(rule, other, q)
    ]
    for worker, question in waiting:
        _answer_by_rule(turn, turn.worker(worker), question, rule, at=fact.at)


def _answers(rule: KeptAnswer, w: Worker, question: Question) -> bool:
    return rule.answers(question, worker=str(w.id), step=w.id.step)


def _answer_by_rule(
    turn: CoreTurn, w: Worker, question: str, rule: KeptAnswer, *, at: float
) -> None:
    """Give the answer that a human once gave to this permission and that is kept."""
    fact = f.HumanAnswered(**w.about(at), question=question, answer=rule.answer, by=rule.scope)
    human_answered(turn, w, fact)


def question_withdrawn(turn: CoreTurn, w: Worker, fact: f.QuestionWithdrawn) -> None:
    """Drop a question that nobody needs to answer any more."""
    _withdraw(turn, w, fact.question)


def _withdraw(turn: CoreTurn, w: Worker, question: str) -> Worker:
    left = tuple(q for q in w.attempt.questions if q.id != question)
    if len(left) == len(w.attempt.questions):
        return w
    badges = w.badges if left else w.badges - {Badge.ASKS}
    if not left:
        turn.effects.append(HoldClocks(**w.who, is_held=False))
    return turn.change(replace(w, attempt=replace(w.attempt, questions=left), badges=badges))


def agent_steered(turn: CoreTurn, w: Worker, fact: f.AgentSteered) -> None:
    """Send the words to the agent while it runs."""
    if w.phase is not Phase.RUNNING:
        return
    said = (*w.attempt.said, HumanWords(text=fact.text))
    turn.change(replace(w, attempt=replace(w.attempt, said=said)))
    turn.effects.append(SendSteer(**w.who, text=fact.text))
    _tell_of(turn, w, fact.text, Delivery.QUEUED)


def steer_heard(turn: CoreTurn, w: Worker, fact: f.SteerHeard) -> None:
    """Note that the words have reached the agent, at once or in its prompt."""
    delivered = HumanWords(text=fact.text, delivery=Delivery.DELIVERED)
    if _replace(turn, w, delivered):
        _tell_of(turn, w, fact.text, Delivery.DELIVERED)
    elif fact.text in w.next.carried:
        left = list(w.next.carried)
        left.remove(fact.text)
        turn.change(replace(w, next=replace(w.next, carried=tuple(left))))
        _tell_of(turn, w, fact.text, Delivery.DELIVERED)


def steer_unheard(turn: CoreTurn, w: Worker, fact: f.SteerUnheard) -> None:
    """Keep the words for the next attempt."""
    delivery = Delivery.REFUSED if fact.is_refused else Delivery.QUEUED
    lost = HumanWords(text=fact.text, is_heard=False, delivery=delivery)
    if _replace(turn, w, lost) and fact.is_refused:
        _tell_of(turn, w, fact.text, delivery)


def refuse_words(turn: CoreTurn, w: Worker) -> None:
    """Refuse the words that an attempt which is over did not hear: they are for a retry."""
    for said in w.attempt.said:
        if said.question is None and said.delivery is Delivery.QUEUED:
            _tell_of(turn, w, said.text, Delivery.REFUSED)


def _replace(turn: CoreTurn, w: Worker, by: HumanWords) -> bool:
    """Change the state of the first of such words that wait; return whether there were any."""
    known = w.attempt.said
    for place, said in enumerate(known):
        waits = said.question is None and said.delivery is not Delivery.DELIVERED
        if waits and said.text == by.text and said != by:
            after = (*known[:place], by, *known[place + 1 :])
            turn.change(replace(w, attempt=replace(w.attempt, said=after)))
            return True
    return False


def _tell_of(turn: CoreTurn, w: Worker, text: str, delivery: Delivery) -> None:
    turn.publish(Steered(**w.told, text=text, delivery=delivery))


def agent_interrupted(turn: CoreTurn, w: Worker, _fact: f.AgentInterrupted) -> None:
    """Break off its turn."""
    if w.phase is Phase.RUNNING:
        turn.effects.append(SendInterrupt(**w.who))


def rate_limit_seen(turn: CoreTurn, w: Worker, fact: f.RateLimitSeen) -> None:
    """Show a badge as long as the vendor makes it wait."""
    badges = w.badges - {Badge.RATE_LIMITED}
    waits = fact.until is not None or bool(fact.status)
    if waits and w.phase is Phase.RUNNING:
        badges |= {Badge.RATE_LIMITED}
    attempt = replace(w.attempt, rate_limited_until=fact.until)
    turn.change(replace(w, attempt=attempt, badges=badges))
    if fact.status and (fact.until is None or fact.until > turn.state.now):
        turn.publish(RateLimitMet(**w.told, until=fact.until, status=fact.status))


def stall_seen(turn: CoreTurn, w: Worker, fact: f.StallSeen) -> None:
    """Show a badge as long as nothing moves."""
    is_shown = fact.is_stalled and w.phase is Phase.RUNNING
    badges = w.badges | {Badge.STALLED} if is_shown else w.badges - {Badge.STALLED}
    turn.change(replace(w, badges=badges))


def violation_seen(turn: CoreTurn, w: Worker, fact: f.ViolationSeen) -> None:
    """Tell it loudly, and remember it: such a change does not land by itself."""
    attempt = replace(w.attempt, violations=(*w.attempt.violations, fact.path))
    turn.change(replace(w, attempt=attempt, badges=w.badges | {Badge.VIOLATION}))
    turn.publish(IsolationViolated(**w.told, path=fact.path))


def tree_seen(turn: CoreTurn, w: Worker, fact: f.TreeSeen) -> None:
    """Know its change so far; once its work is collected, that tells more."""
    if w.phase in {Phase.RUNNING, Phase.STOPPING} and fact.change != w.attempt.so_far:
        turn.change(replace(w, attempt=replace(w.attempt, so_far=fact.change)))
        seen = fact.change
        turn.publish(
            ChangeSeen(
                **w.told,
                files=seen.files,
                insertions=seen.insertions,
                deletions=seen.deletions,
            )
        )


def worker_paused(turn: CoreTurn, w: Worker, _fact: f.WorkerPaused) -> None:
    """Freeze its tree."""
    if w.phase is Phase.RUNNING:
        turn.change(replace(w, badges=w.badges | {Badge.PAUSED}))
        turn.effects.append(FreezeAttempt(**w.who))


def worker_resumed(turn: CoreTurn, w: Worker, _fact: f.WorkerResumed) -> None:
    """Let its tree go on."""
    turn.change(replace(w, badges=w.badges - {Badge.PAUSED}))
    if w.phase is Phase.RUNNING:
        turn.effects.append(ThawAttempt(**w.who))


def limits_set(turn: CoreTurn, w: Worker, fact: f.LimitsSet) -> None:
    """Change the limits from now on, and for later attempts."""
    turn.change(replace(w, limits=fact.limits))
    if w.phase is Phase.RUNNING:
        turn.effects.append(ChangeLimits(**w.who, limits=fact.limits))

"""Every agent of a plan has secrets that nobody else sees, whatever it is asked for."""

from dataclasses import replace

from engine.plan.model import AgentChoice, AssistRule, ReviewRules
from engine.site.secrets_of import known_secrets
from tests.support.plans import AGENT, a_plan, a_step


def test_the_values_that_only_the_helper_gets_are_known_secrets():
    helper = AgentChoice(name="helper", adapter="claude", env={"KEY": "helpersecret99"})
    plan = replace(a_plan(a_step("a", 2)), review=ReviewRules(assist=AssistRule(agent=helper)))
    assert known_secrets([plan], {}) == {"KEY": "helpersecret99"}
    assert plan.agents == (AGENT, helper)


def test_a_helper_that_works_too_is_one_agent():
    plan = replace(a_plan(a_step("a")), review=ReviewRules(assist=AssistRule(agent=AGENT)))
    assert plan.agents == (AGENT,)

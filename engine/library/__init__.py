"""Offer agents and sessions to Python programs, on top of `engine.api`.

This room knows how a program wants to work: prompts, conversations, forks, a workspace for a while.
It runs nothing in a way of its own: every session is a run of an engine, and consoles see it like
any other.
"""

from engine.library.agent import Agent
from engine.library.replies import AgentRunFailed, Reply, Turn
from engine.library.session import IsolatedAgentSession

__all__ = ["Agent", "AgentRunFailed", "IsolatedAgentSession", "Reply", "Turn"]

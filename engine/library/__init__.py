"""The engine as a library: agents and sessions for Python programs, on top of the front door.

Knows how a program wants to work: prompts, conversations, forks, a workspace for a while. It adds
no way of its own to run anything: all of it are runs of an engine, seen by consoles like any other.
"""

from engine.library.agent import Agent
from engine.library.replies import AgentRunFailed, Reply, Turn
from engine.library.session import IsolatedAgentSession

__all__ = ["Agent", "AgentRunFailed", "IsolatedAgentSession", "Reply", "Turn"]

"""How a git is called and asked: one hardened process, gits that stay, and what they have said.

Knows processes, files and bytes. It does not know repositories: `engine.git.runner.Repo` and
`engine.git.objects` put it together, and the rest of git goes through them.
"""

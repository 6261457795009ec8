"""The ways to call and ask git: one hardened process, gits that stay, answers that are kept.

Knows processes, files and bytes. It does not know repositories: `engine.git.runner.Repo` and
`engine.git.objects` put it together, and the rest of git goes through them.
"""

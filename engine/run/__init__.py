"""Carry out runs: journal facts, perform effects, judge commands, answer questions."""

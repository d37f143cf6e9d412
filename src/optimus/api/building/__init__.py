"""From specs to a scenario: records checked against each other, names resolved, times made absolute.

Why: what one record says about another can only be judged when all of them are there.
Owns: duplicate names, names that lead nowhere, who runs where, the timeline, and whom an expectation means.
Must not: read files, raise for a bad record, or decide anything the scheduler decides.
"""

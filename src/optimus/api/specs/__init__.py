"""The file formats as pydantic models: one class for every mapping a person can write.

Why: defaults, names and limits of each field in one place, from which reference pages and schemas can be made.
Owns: field names (camelCase in files), shorthands, and what is wrong with one field alone.
Must not: read files, or look from one record at another; that is `optimus.api.building`.
"""

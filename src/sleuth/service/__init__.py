"""Agents as a service: OpenAI-compatible endpoints and a web page; the same page over a run folder.

app: routes (Starlette) · desk: agents by name, slots, deadlines · tracing: spans · wire: requests · chat, responses: the two forms of a
reply · store: episodes and feedback on disk · episodes, run_folder: what the page shows · page: the page as one file.
"""

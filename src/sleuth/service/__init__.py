"""Agents as a service: OpenAI-compatible endpoints and a web page; the same page over a run folder.

app: routes (Starlette) · pool: agents by name, slots, deadlines · tracing: spans · wire: requests · chat, responses:
the two forms of a reply · store: episodes and feedback on disk · episodes, run_folder: stored episodes and runs for the
page · viewer: routes of the page · page: the page as one file.
"""

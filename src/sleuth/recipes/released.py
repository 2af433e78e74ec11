"""Released checkpoints that the papers' tables compare, under the prompts and layouts of their own scripts.

Evaluation only. ARENA (§4.3) replaces what their searches find by the paragraphs of the question: the variants "given".
"""

from sleuth.protocols.prompted.search_o1 import SearchO1
from sleuth.protocols.released import MarkedSearch
from sleuth.recipe import Recipe
from sleuth.recipes import search_r1
from sleuth.retrievers.given import AllGiven

# The prompt "v1" of the released evaluation, word for word; base models get it without a chat template.
_R1_SEARCHER = (
    "The User asks a question, and the Assistant solves it.\n"
    "The Assistant first thinks about the reasoning process in the mind and then provides the User with the final "
    "answer.\n"
    "The output format of reasoning process and final answer are enclosed within <think> </think> and <answer> "
    '</answer> tags, respectively, i.e., "<think> reasoning process here </think>\n\n<answer> final answer here '
    '</answer>".\n'
    "During the reasoning process, the Assistant will break down the original question into sub-questions and address "
    "them step by step.\n"
    "For each sub-question, **the Assistant can perform searching** for uncertain knowledge using the format: "
    '"<|begin_of_query|> keyword1\tkeyword2\t... <|end_of_query|>".\n'
    '**The query must consist of straightforward and essential keywords separated by "\t"**. Furthermore, **the query '
    "must involve only a single triple to address a sub-question**.\n"
    "Then, the search system will provide the Assistant with relevant information with the format of "
    '"<|begin_of_documents|> ...search results... <|end_of_documents|>".\n\n'
    "User:{question}\nAssistant: <think>"
)
# The released system prompt of the instruction-tuned models, word for word.
_RESEARCH = (
    "You are a helpful assistant that can solve the given question step by step with the help of the wikipedia search "
    "tool. Given a question, you need to first think about the reasoning process in the mind and then provide the "
    "answer. During thinking, you can invoke the wikipedia search tool to search for fact information about specific "
    "topics if needed. The reasoning process and answer are enclosed within <think> </think> and <answer> </answer> "
    "tags respectively, and the search query and result are enclosed within <search> </search> and <result> </result> "
    "tags respectively. For example, <think> This is the reasoning process. </think> <search> search query here "
    "</search> <result> search result here </result> <think> This is the reasoning process. </think> <answer> The "
    "final answer is \\[ \\boxed{answer here} \\] </answer>. In the last part of the answer, the final exact answer is "
    "enclosed within \\boxed{} with latex format."
)
# The released prompt for open questions, word for word; condensing is ours (search-o1), by the same model.
_SIMPLE_DEEP_SEARCHER = (
    "You are a reasoning assistant with the ability to perform web searches to help you answer the user's question "
    "accurately. You have special tools:\n\n"
    "- To perform a search: write <|begin_search_query|> your query here <|end_search_query|>.\n"
    "Then, the system will search and analyze relevant web pages, then provide you with helpful information in the "
    "format <|begin_search_result|> ...search results... <|end_search_result|>.\n\n"
    "Whenever you encounter a topic, fact, or piece of information you are uncertain about or need further details on, "
    "please perform a search to gather more accurate, up-to-date, or specific information. You can repeat the search "
    "process multiple times if necessary. The maximum number of search attempts is limited to {max_searches}.\n\n"
    "Once you have all the information you need, continue your reasoning.\n\n"
    "Remember:\n"
    "- Use <|begin_search_query|> to request a web search and end with <|end_search_query|>.\n"
    "- When done searching, continue your reasoning.\n"
    "- Do not generate <|begin_search_result|> and <|end_search_result|> tags yourself.\n\n"
    "Please answer the following question. You should think step by step to solve it.\n\n"
    "Provide your final answer in the format \\boxed{YOUR_ANSWER}.\n\n"
    "Question:\n{question}\n\n"
)


def _released(
    name: str, source: str, protocol: MarkedSearch | SearchO1, **sizes: object
) -> dict[str, Recipe]:
    paper = search_r1.PAPER.but(name=f"{name}/paper", protocol=protocol, source=source)
    paper = paper.sized(steps=0, max_context=16_384, **sizes)
    # All paragraphs of a question come with every result.
    given = paper.but(name=f"{name}/given", retriever=AllGiven())
    return {"paper": paper, "given": given.sized(top_k=20, max_passage_tokens=8192)}


R1_SEARCHER = _released(
    "r1-searcher",
    "R1-Searcher (Song et al. 2025), released evaluation script",
    MarkedSearch(
        _R1_SEARCHER,
        query=("<|begin_of_query|>", "<|end_of_query|>"),
        result=("<|begin_of_documents|>", "<|end_of_documents|>"),
        is_plain=True,
    ),
    model="XXsongLALA/Qwen-2.5-7B-base-RAG-RL",
    top_k=5,  # code
    max_steps=10,  # code: the tenth turn cannot search
    max_new_tokens=512,  # code
    max_passage_tokens=1024,  # ours
)
RESEARCH = _released(
    "research",
    "ReSearch (Chen et al. 2025), released prompt",
    MarkedSearch(_RESEARCH, answer="box", passage="{title}\n{text}\n"),
    model="agentrl/ReSearch-Qwen-7B-Instruct",
    top_k=5,  # the paper's
    max_steps=8,  # ours
    max_new_tokens=1024,  # ours
    max_passage_tokens=1024,  # ours
)
SIMPLE_DEEP_SEARCHER = _released(
    "simple-deep-searcher",
    "SimpleDeepSearcher (Sun et al. 2025), released inference script",
    SearchO1(_SIMPLE_DEEP_SEARCHER),
    model="RUC-AIBOX/Qwen-7B-SimpleDeepSearcher",
    top_k=10,  # code
    max_steps=21,  # code: 10 searches, each with its condensing turn, and the answer
    max_new_tokens=2048,  # ours
    max_passage_tokens=4096,  # ours
)

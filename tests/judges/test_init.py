import pytest

from sleuth.errors import ConfigError
from sleuth.judges import open_judge
from sleuth.judges.lexical import LexicalJudge
from sleuth.judges.llm import LLMJudge
from sleuth.judges.nli import NLIJudge
from sleuth.judges.small import SmallJudge


def test_open_judge():
    assert open_judge("lexical") == LexicalJudge()
    assert open_judge("small") == SmallJudge()
    assert open_judge("openai:http://localhost:1/v1#m") == LLMJudge("openai:http://localhost:1/v1#m")
    assert open_judge("some/classifier") == NLIJudge("some/classifier")
    with pytest.raises(ConfigError, match="empty"):
        open_judge(" ")

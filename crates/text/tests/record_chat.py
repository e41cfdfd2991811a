"""Records what Python's Jinja makes of chat templates, for tests/it/chat.rs.

    python crates/text/tests/record_chat.py SMOLLM2.gguf QWEN.gguf > crates/text/tests/fixtures/chat.json

Needs the PyPI packages jinja2 (3.1.6) and gguf.  The environment is the one in which models' templates are run by
the tools that their authors use: sandboxed, trim_blocks, lstrip_blocks, loop controls, `tojson` without escapes for
HTML.  Of the real models' templates only a checksum of the prompt is kept.
"""

import datetime
import json
import sys

import jinja2.ext
from gguf import GGUFReader
from jinja2.sandbox import ImmutableSandboxedEnvironment

MESSAGES = [
    {"role": "system", "content": "  Be brief.\n"},
    {"role": "user", "content": "What's \"2 < 3\" & 'é'?"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nTrue."},
    {"role": "user", "content": "Why? 日本"},
]
CALL = {"function": {"name": "add", "arguments": {"b": 2, "a": [1.0, 1e-7, None, True], "s": "x\ty\u2028"}}}
TOOL_MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Add."},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "3"},
    {"role": "tool", "content": "4"},
    {"role": "assistant", "content": "Seven."},
]
TOOLS = [
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"b": {"type": "int"}, "a": {}}}}},
]

TEMPLATES = [
    # White space around blocks.
    "{% for m in messages %}\n  {% if m.role == 'user' %}\n[U] {{ m.content }}\n  {% else %}\n[{{ m['role'][0] | upper }}] {{ m.content | trim }}\n  {% endif %}\n{% endfor %}\n{% if add_generation_prompt %}\n[A]{% endif %}\n",
    "{%- for m in messages -%}\n    {{- bos_token ~ m.role + ': ' + m.content -}}\n{%- endfor -%}\n\n{{ eos_token }}\n\n",
    # Methods of strings.
    "{% for m in messages %}{{ m.content.strip().split()[0] }}|{{ m.content.strip().split(' ', 1) | length }}|{{ m.content.rstrip('.?') }}|{{ m.content.lstrip() }}|{{ m.content.startswith('Wh') }}|{{ m.content.endswith(('.', '本')) }}\n{% endfor %}",
    "{{ 'a,b,,c'.split(',') }}{{ 'a,b,,c'.rsplit(',', 1) }}{{ ' a  b '.split() }}{{ ' a  b c '.split(none, 1) }}{{ ' a b  c '.rsplit(none, 1) }}{{ 'a\\nb\\n'.splitlines() }}",
    "{{ 'hello World'.title() }} {{ 'hELLO'.capitalize() }} {{ 'Hi'.upper() }} {{ 'Hi'.lower() }} {{ 'x-y-z'.replace('-', '+', 1) }} {{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'abc'.find('z') }} {{ 'aXbX'.count('X') }} {{ '-'.join(['a', 'b']) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('bc') }} {{ '12'.isdigit() }} {{ ''.isdigit() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'AB1'.isupper() }}",
    "{% set t = messages[2].content %}{% if '</think>' in t %}{{ t.split('</think>')[-1].lstrip('\\n') }}|{{ t.split('</think>')[0].split('<think>')[-1].strip('\\n') }}{% endif %}",
    # Methods of dictionaries and lists.
    "{% set d = {'b': 1, 'a': 'x', 'n': none} %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{{ d.keys() | list }}{{ d.values() | list }}{{ d.get('a') }}{{ d.get('z') }}{{ d.get('z', 'dflt') }}{{ d }}",
    "{{ [1, 2, 1].count(1) }} {{ ['a', 'b'].index('b') }} {{ messages[1:] | length }} {{ messages[-1].role }} {{ messages[::-1][0].role }} {{ messages[:-1] | length }}",
    # Values as Python prints them.
    "{{ true }} {{ false }} {{ none }} {{ 1.0 }} {{ 1e20 }} {{ 1e-7 }} {{ 0.1 }} {{ 7 // 2 }} {{ 7 / 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ [1, 'a', \"it's\", 'q\"', none, 2.5] }} {{ {'k': [true]} }} {{ ('a', 1) }}{{ (1,) }}{{ {'a': 1}.items() | list }} {{ undefined_thing }}|",
    # JSON.
    "{{ {'b': 1, 'a': [1.0, 'é<>&', none, true]} | tojson }}\n{{ {'b': 1, 'a': [1, 2], 'e': [], 'f': {}} | tojson(indent=2) }}\n{{ 'tab\\t\"quote\" \\\\ / \\u0001' | tojson }}",
    "{% for m in messages %}{{ m | tojson }}\n{% endfor %}",
    "{% if tools %}{% for t in tools %}{{ t | tojson }}\n{{ t.function.parameters | tojson(indent=4) }}\n{% endfor %}{% else %}no tools{% endif %}",
    "{% for m in messages %}{% if m.tool_calls is defined and m.tool_calls %}{% for c in m.tool_calls %}{% set c = c.function if c.function is defined else c %}{{ c.name }}({{ c.arguments | tojson }}){% endfor %}{% endif %}{% endfor %}",
    # Namespaces, macros, tests, filters, loops.
    "{% set ns = namespace(n=0, last='') %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.n = ns.n + 1 %}{% set ns.last = m.content %}{% endif %}{% endfor %}{{ ns.n }} {{ ns.last }}",
    "{%- macro show(m, mark='#') -%}{{ mark }}{{ m.role }}{% if caller %}{{ caller() }}{% endif %}{%- endmacro -%}{% for m in messages %}{{ show(m) }}{{ show(m, mark='*') }}{% endfor %}{% call show(messages[0]) %} called{% endcall %}",
    "{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }}{{ '^' if loop.first }}{{ '$' if loop.last }}{{ loop.index0 }}{{ loop.previtem.role if loop.previtem is defined else '-' }}{{ loop.cycle('x', 'y') }} {% else %}none{% endfor %}",
    "{% for m in messages %}{% if m.role == 'assistant' %}{% break %}{% endif %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.role }}{% endfor %}",
    "{{ messages | map(attribute='role') | join(',') }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | list }} {{ [3, 1, 2] | sort | first }} {{ [1, 2] | last }} {{ 'abc' | length }} {{ nothing | default('d') }} {{ '' | default('e', true) }} {{ [1, 2, 3] | sum }} {{ 'a b' | replace(' ', '_') }} {% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %} {{ 'x' | string }} {{ '42' | int + 1 }} {{ [[1, 2], [3]] | map('length') | list }}",
    "{% if messages[0].content is string %}s{% endif %}{% if messages is iterable and messages is not mapping %}i{% endif %}{% if messages[0] is mapping %}m{% endif %}{% if 'role' in messages[0] %}k{% endif %}{% if none is none %}n{% endif %}{% if 4 is divisibleby 2 %}d{% endif %}{% if x is not defined %}u{% endif %}{% if 3 is odd %}o{% endif %}{% if messages[0]['role'] == 'system' and not (messages | length > 9) or false %}b{% endif %}",
    "{% set content %}\n  <b>{{ messages[1].content }}</b>\n{% endset %}{{ content | trim }}{# a comment #}{% raw %}{{ raw }}{% endraw %}{{ '{% not a tag %}' }}",
    "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 1, -2) %}{{ i }}{% endfor %}{{ 'ab' * 2 }}{{ '%s-%d' % ('a', 3) if false else 'f' }}{{ 1 if messages else 2 }}{{ messages[0].role ~ 1 ~ none }}",
    "{{ strftime_now('%d %B %Y, %H:%M %A %j') }}|{{ strftime_now('%b %-d') }}",
    "{% filter upper %}abc {{ messages[0].role }}{% endfilter %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}",
]
GENERATION = "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{%- generation -%} {{ m.content }} {%- endgeneration -%}{% endif %}\n{% endfor %}"
REFUSING = "{% if messages[0].role == 'system' %}{{ raise_exception('no system messages: ' ~ messages[0].content | trim) }}{% endif %}"
NOW = datetime.datetime(2026, 2, 3, 4, 5, 6)


class Generation(jinja2.ext.Extension):
    """`{% generation %}` prints what it holds."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


class Refused(Exception):
    pass


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, Generation]
    )

    def refuse(message):
        raise Refused(message)

    env.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(template, messages, tools, add_generation_prompt):
    return environment().from_string(template).render(
        messages=messages, tools=tools, add_generation_prompt=add_generation_prompt,
        bos_token="<s>", eos_token="</s>", unk_token="", pad_token="",
    )


def checksum(text):
    sum = 0
    for byte in text.encode():
        sum = (sum * 31 + byte) % 2**64
    return f"{sum:016x}"


def main():
    cases = []
    inputs = [(MESSAGES, None, True), (TOOL_MESSAGES, TOOLS, False)]
    for template in [*TEMPLATES, GENERATION]:
        for index, input in enumerate(inputs):
            try:
                cases.append({"template": template, "input": index, "prompt": render(template, *input)})
            except jinja2.TemplateError as error:
                print(f"{template!r}: {error}", file=sys.stderr)
    try:
        render(REFUSING, *inputs[0])
    except Refused as refused:
        refusal = {"template": REFUSING, "message": str(refused)}
    models = []
    for model in sys.argv[1:]:
        template = GGUFReader(model).fields["tokenizer.chat_template"].contents()
        for index, input in enumerate(inputs):
            prompt = render(template, *input)
            models.append({"input": index, "length": len(prompt.encode()), "checksum": checksum(prompt)})
    json.dump(
        {
            "recorded_with": "python crates/text/tests/record_chat.py SMOLLM2.gguf QWEN.gguf (jinja2 3.1.6)",
            "now": int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp()),
            "inputs": [
                {"messages": json.dumps(m), "tools": json.dumps(t) if t else None, "add_generation_prompt": a}
                for m, t, a in inputs
            ],
            "cases": cases,
            "refusal": refusal,
            "models": models,
        },
        sys.stdout, indent=1,
    )
    print()


main()

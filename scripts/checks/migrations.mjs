// A migration runs while the API of the previous release is still running: it may add, but must not remove, rename or
// lock anything in use.
import { readFileSync } from 'node:fs'
import { trackedFiles } from './tracked-files.mjs'

/** The whole schema of the first release: no earlier release is running. */
const checkedAfter = '20261123040000_init'
const name = '"?([\\w]+)"?'

/** The first group, if any, is the table: a table that the same file creates is not in use yet. */
const rules = [
  {
    pattern: /\bdrop\s+(?:table|view|materialized view|type|schema)\b/,
    why: 'removes an object that the previous release still uses',
  },
  {
    pattern: new RegExp(`\\balter\\s+table\\s+(?:only\\s+)?${name}[^;]*\\bdrop\\s+(?:column\\b|constraint\\b)`),
    why: 'removes a constraint or column that the previous release still relies on',
  },
  {
    pattern: new RegExp(`\\balter\\s+table\\s+(?:only\\s+)?${name}[^;]*\\brename\\b`),
    why: 'renames an object that the previous release still uses',
  },
  {
    pattern: /\balter\s+(?:type|view|function|schema|index)\s[^;]*\brename\b/,
    why: 'renames an object that the previous release still uses',
  },
  {
    pattern: new RegExp(
      `\\balter\\s+table\\s+(?:only\\s+)?${name}[^;]*\\balter\\s+column\\s+\\S+\\s+(?:set\\s+data\\s+)?type\\b`,
    ),
    why: 'rewrites the whole table under a lock',
  },
  {
    pattern: new RegExp(`\\balter\\s+table\\s+(?:only\\s+)?${name}[^;]*\\bset\\s+not\\s+null\\b`),
    why: 'refuses rows of the previous release',
  },
  {
    pattern: new RegExp(
      `\\balter\\s+table\\s+(?:only\\s+)?${name}[^;]*\\badd\\s+column\\s+(?:(?!\\bdefault\\b|,|;)[\\s\\S])*\\bnot\\s+null\\b(?![^,;]*\\bdefault\\b)`,
    ),
    why: 'refuses rows of the previous release: give a default',
  },
  {
    pattern: new RegExp(
      `\\balter\\s+table\\s+(?:only\\s+)?${name}[^;]*\\badd\\s+constraint\\s+\\S+\\s+(?:check|foreign)\\b(?![^;]*\\bnot\\s+valid\\b)`,
    ),
    why: 'reads the whole table under a lock: add it NOT VALID',
  },
  {
    pattern: new RegExp(`\\bcreate\\s+unique\\s+index\\s+\\S+\\s+on\\s+(?:only\\s+)?${name}`),
    why: 'may refuse rows of the previous release, and blocks writers',
  },
  {
    pattern: new RegExp(`\\bcreate\\s+index\\s+(?:if\\s+not\\s+exists\\s+)?\\S+\\s+on\\s+(?:only\\s+)?${name}`),
    why: 'blocks writers until it is done',
  },
  { pattern: /\b(?:truncate|lock\s+table|vacuum\s+full)\b/, why: 'blocks every reader and writer' },
  {
    pattern: new RegExp(`\\b(?:update\\s+(?:only\\s+)?${name}(?:\\s+(?:as\\s+)?\\w+)?\\s+set|delete\\s+from\\s)`),
    why: 'changes rows of the previous release, and may lock many of them',
  },
]
/** On a separate line above the statement: the reason why it does no harm. */
const waiver = /--\s*not expand-only:\s*\S.{9,}/i

/** Two migrations each, which a renaming would apply once more. */
const sharedStamps = ['20261127000000', '20261127020000']

export function checkMigrations() {
  const files = trackedFiles(/^packages\/db\/prisma\/migrations\/\d+_\w+\/migration\.sql$/)
  const named = files.map((file) => ({ file, migration: file.split('/').at(-2) }))
  return [
    ...stampProblemsOf(named.map(({ migration }) => migration)),
    ...named
      .filter(({ migration }) => migration > checkedAfter)
      .flatMap(({ file }) => problemsOf(readFileSync(file, 'utf8')).map((problem) => `${file}: ${problem}`)),
  ]
}

/**
 * @param {string[]} migrations their names, sorted
 * @returns {string[]}
 */
export function stampProblemsOf(migrations) {
  const stampOf = (name) => name.split('_')[0]
  return migrations
    .filter((name, index) => index > 0 && stampOf(name) === stampOf(migrations[index - 1]))
    .filter((name) => !sharedStamps.includes(stampOf(name)))
    .map(
      (name) =>
        `${name} has the time stamp of another migration, so their order hangs on their names: choose a later one`,
    )
}

/**
 * @param {string} sql
 * @returns {string[]}
 */
export function problemsOf(sql) {
  const made = new Set(
    [...sql.matchAll(new RegExp(`\\bcreate\\s+table\\s+(?:if\\s+not\\s+exists\\s+)?${name}`, 'gi'))].map((match) =>
      match[1].toLowerCase(),
    ),
  )
  const problems = []
  for (const statement of statementsOf(sql)) {
    if (waiver.test(statement)) continue
    const text = statement.replaceAll(/--.*$/gm, '').toLowerCase().trim()
    // Bodies of functions run later, in the API's own transactions.
    if (/^(?:create\s+(?:or\s+replace\s+)?(?:function|procedure|trigger)|grant|revoke|comment)\b/.test(text)) continue
    for (const { pattern, why } of rules) {
      const match = pattern.exec(text)
      if (!match || made.has(match[1])) continue
      problems.push(
        `"${text.replaceAll(/\s+/g, ' ').slice(0, 80)}" ${why}. Do it in a later release, or give the reason in a line above it: -- not expand-only: why it does no harm`,
      )
      break
    }
  }
  return problems
}

/** Splits at semicolons outside of quotes and dollar quotes; comments stay with the next statement. */
function statementsOf(sql) {
  const token = /--[^\n]*|'(?:[^']|'')*'|\$(\w*)\$[\s\S]*?\$\1\$|;|[^;'$-]+|[\s\S]/g
  const statements = ['']
  for (const [part] of sql.matchAll(token)) {
    if (part === ';') statements.push('')
    else statements[statements.length - 1] += part
  }
  return statements.filter((statement) => statement.trim() !== '')
}

#!/usr/bin/env node
/**
 * Stands in for Prisma's native `schema-engine` executable: the same engine and commit, as the WebAssembly build that
 * Prisma publishes on npm, behind the line-delimited JSON-RPC on stdin and stdout that the Prisma CLI speaks.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'
import { databaseName, MigrationPg, withAdmin, withDatabase } from './migration-adapter.mjs'

const exitPanic = 101
const errorCodeRpc = 4466

function log(level, fields) {
  const line = { timestamp: new Date().toISOString(), level, fields, target: 'schema_engine::logger' }
  process.stderr.write(`${JSON.stringify(line)}\n`)
}

async function loadEngine() {
  const require = createRequire(import.meta.url)
  const modulePath = require.resolve('@prisma/schema-engine-wasm/schema_engine_bg')
  const bindings = await import(modulePath)
  globalThis.PRISMA_WASM_PANIC_REGISTRY = {
    message: '',
    set_message(text) {
      this.message = text
    },
  }
  const bytes = readFileSync(path.join(path.dirname(modulePath), 'schema_engine_bg.wasm'))
  const { instance } = await WebAssembly.instantiate(bytes, { './schema_engine_bg.js': bindings })
  bindings.__wbg_set_wasm(instance.exports)
  instance.exports.__wbindgen_start?.()
  return bindings
}

function parseArguments(argv) {
  const parsed = { datamodels: [], datasource: {}, command: undefined, version: argv.includes('--version') }
  for (let index = 0; index < argv.length; index++) {
    const name = argv[index]
    if (name === '--datamodels') {
      const file = argv[++index]
      parsed.datamodels.push([file, readFileSync(file, 'utf8')])
    } else if (name === '--datasource') parsed.datasource = JSON.parse(argv[++index])
    else if (name === '--enabled-preview-features' || name === '--extension-types') index++
    else if (name === 'cli') parsed.command = argv[++index]
  }
  return parsed
}

/** The engine's `cli` sub-commands, which answer by exit code and one log line. */
async function runCommand(command, url) {
  const name = databaseName(url)
  try {
    if (command === 'can-connect-to-database') await withDatabase(url, (client) => client.query('select 1'))
    else if (command === 'create-database') await withAdmin(url, (client, id) => client.query(`create database ${id}`))
    else if (command === 'drop-database')
      await withAdmin(url, (client, id) => client.query(`drop database if exists ${id} with (force)`))
    else throw new Error(`unknown command ${command}`)
    return 0
  } catch (error) {
    process.stderr.write('\n')
    log('ERROR', { ...commandError(error, url, name), is_panic: false })
    return 1
  }
}

function commandError(error, url, name) {
  if (error.code === '3D000') return { error_code: 'P1003', message: `Database \`${name}\` does not exist` }
  if (error.code === '28P01' || error.code === '28000')
    return { error_code: 'P1000', message: `Authentication failed against database server: ${error.message}` }
  const { hostname, port } = new URL(url)
  const reason = error.message || error.code
  return {
    error_code: 'P1001',
    message: `Can't reach database server at \`${hostname}:${port || 5432}\`: ${reason}`,
  }
}

function createServer(bindings, { datamodels, datasource }) {
  let engine
  let printId = 1_000_000
  const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

  async function getEngine() {
    const url = datasource.url ?? 'postgresql://offline:offline@127.0.0.1:1/offline'
    engine ??= await bindings.SchemaEngine.new(
      { datamodels: datamodels.length > 0 ? datamodels : undefined },
      (message) => log('INFO', { message: String(message) }),
      bindMigrationAwareSqlAdapterFactory(new MigrationPg(url, datasource.shadowDatabaseUrl)),
    )
    return engine
  }

  async function call(id, method, params) {
    if (method === 'createDatabase') {
      await withAdmin(datasource.url, (client, name) => client.query(`create database ${name}`))
      return send({ id, result: { databaseName: databaseName(datasource.url) } })
    }
    const target = await getEngine()
    const name = method === 'getDatabaseVersion' ? 'version' : method
    if (typeof target[name] !== 'function')
      return send({ id, error: { code: -32601, message: `Method not found: ${method}` } })
    // These two find the shadow schema only in the engine's cache; devDiagnostic fills it.
    if ((name === 'evaluateDataLoss' || name === 'createMigration') && params.migrationsList)
      await target.devDiagnostic({ migrationsList: params.migrationsList, filters: params.filters }).catch(() => {})
    let result = await target[name](params)
    if (method === 'diff' && result?.stdout != null) {
      send({ id: printId++, method: 'print', params: { content: result.stdout } })
      result = { exitCode: result.exitCode, stdout: null }
    }
    send({ id, result: result ?? {} })
  }

  return async function handle(line) {
    const { id, method, params } = JSON.parse(line)
    // The CLI acknowledges our own `print`: an answer, without a method.
    if (!method) return
    try {
      await call(id, method, params)
    } catch (error) {
      const data = {
        is_panic: false,
        message: error?.message ?? String(error),
        meta: error?.meta ?? null,
        error_code: error?.code ?? null,
      }
      send({
        id,
        error: { code: errorCodeRpc, message: 'An error happened. Check the data field for details.', data },
      })
    }
  }
}

// A trap inside the engine must end the process loudly, by the code that the CLI reads as a panic.
process.on('uncaughtException', (error) => {
  const message = globalThis.PRISMA_WASM_PANIC_REGISTRY?.message || error.message
  log('ERROR', { is_panic: true, message, backtrace: error.stack })
  process.exit(exitPanic)
})

const bindings = await loadEngine()
const parsed = parseArguments(process.argv.slice(2))
if (parsed.version) {
  console.log(`schema-engine-wasm ${bindings.version()}`)
} else if (parsed.command) {
  process.exit(await runCommand(parsed.command, parsed.datasource.url))
} else {
  const handle = createServer(bindings, parsed)
  let chain = Promise.resolve()
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      if (line.trim()) chain = chain.then(() => handle(line))
    })
    .on('close', () => chain.then(() => process.exit(0)))
}

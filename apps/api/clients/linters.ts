import path from 'node:path'
import { runTool } from './tools.ts'

const configuration = (name: string) => path.join(import.meta.dirname, name)

export const redocly = (file: string) => runTool('redocly', ['lint', '--config', configuration('redocly.yaml'), file])

/** Examples are held against their schemas by openapi/document.test.ts, which takes a tenth of the time. */
export const spectral = (file: string) =>
  runTool('spectral', ['lint', '--fail-severity', 'hint', '--ruleset', configuration('spectral.json'), file])

import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')
export const toolchain = path.join(root, '.toolchain')
export const edgeSource = path.join(root, 'edge/streamer-zig')
export const inRoot = (...parts) => path.join(root, ...parts)
export const edgeProgram = path.join(edgeSource, 'zig-out/bin/bootfarm-edge')
export const simProgram = path.join(edgeSource, 'zig-out/bin/bootfarm-sim')
/** The demo's programs: the optimised ones, or those that are built in seconds. */
export const edgePrograms = { edge: edgeProgram, sim: simProgram }
export const quickPrograms = {
  edge: path.join(edgeSource, 'zig-out/quick/bin/bootfarm-edge'),
  sim: path.join(edgeSource, 'zig-out/quick/bin/bootfarm-sim'),
}
/** Built only for benchmarks. */
export const storeBenchProgram = path.join(edgeSource, 'zig-out/bin/store-bench')
export const streamBenchProgram = path.join(edgeSource, 'zig-out/bin/stream-bench')
/** Built by `zig build -Darch=aarch64 --prefix zig-out/arm64`. */
export const arm64EdgeProgram = path.join(edgeSource, 'zig-out/arm64/bin/bootfarm-edge')

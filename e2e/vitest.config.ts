import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: [
      'set-up/**/*.test.ts',
      'sockets/**/*.test.ts',
      'sockets-long/**/*.test.ts',
      'faults/**/*.test.ts',
      'uplink/**/*.test.ts',
      'reports/**/*.test.ts',
      'install/**/*.test.ts',
      'install-long/**/*.test.ts',
      'machines/**/*.test.ts',
      'machines-long/**/*.test.ts',
      'lan/**/*.test.ts',
      'boot-paths/**/*.test.ts',
      'content/**/*.test.ts',
    ],
    setupFiles: ['./lib/lab/wait-limits.ts'],
    // Each file drives real processes on a machine with two cores; running them one after the other keeps their time
    // limits honest.
    fileParallelism: false,
    // They end what hangs; a busy machine takes several times as long as a quiet one.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000 } },
  },
})

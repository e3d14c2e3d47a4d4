import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: [
      'set-up/**/*.test.ts',
      'sockets/**/*.test.ts',
      'sockets-long/**/*.test.ts',
      'faults/**/*.test.ts',
      'reports/**/*.test.ts',
      'install/**/*.test.ts',
      'install-long/**/*.test.ts',
      'machines/**/*.test.ts',
      'machines-long/**/*.test.ts',
      'lan/**/*.test.ts',
    ],
    setupFiles: ['./lib/lab/wait-limits.ts'],
    // Each file drives real processes on a machine with two cores; running them one after the other keeps their time
    // limits honest.
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
})

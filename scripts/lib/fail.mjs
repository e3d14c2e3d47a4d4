/** A failure that the user can act on: printed as one sentence without a stack, with exit code 1. */
export class UserError extends Error {}

/** Runs `main`; a UserError ends with its sentence, anything else with its stack, both with exit code 1. */
export async function runMain(main) {
  try {
    await main()
  } catch (error) {
    process.stderr.write(`\nbootfarm: ${error instanceof UserError ? error.message : error.stack}\n`)
    process.exitCode = 1
  }
}

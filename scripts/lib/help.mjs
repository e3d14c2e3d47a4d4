/**
 * Prints how a command is used where its arguments ask for that.
 * @param {string} usage
 * @returns {boolean} true where they do, and there is nothing else to do
 */
export function helps(usage) {
  if (!process.argv.slice(2).some((word) => word === '--help' || word === '-h')) return false
  process.stdout.write(usage)
  return true
}

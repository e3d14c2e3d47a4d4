export function checkMigrations(): string[]
export function problemsOf(sql: string): string[]

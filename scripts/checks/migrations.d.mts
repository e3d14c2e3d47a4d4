export function checkMigrations(): string[]
export function problemsOf(sql: string): string[]
export function stampProblemsOf(migrations: string[]): string[]

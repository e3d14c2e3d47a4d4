import { testSystemBoots } from '../lib/assert/system-boots.ts'

await testSystemBoots('bios', 2, 300_000)

import { testSystemBoots } from '../lib/system-boots.ts'

await testSystemBoots('bios', 2, 300_000)

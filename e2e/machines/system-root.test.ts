import { testSystemBoots } from '../lib/system-boots.ts'

await testSystemBoots('bios', 4, 300_000)

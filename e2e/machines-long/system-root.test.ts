import { testSystemBoots } from '../lib/system-boots.ts'

await testSystemBoots('uefi', 2, 300_000)
await testSystemBoots('bios', 8, 600_000)

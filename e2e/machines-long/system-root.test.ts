import { testSystemBoots } from '../lib/assert/system-boots.ts'

await testSystemBoots('uefi', 2, 300_000)
await testSystemBoots('bios', 8, 600_000)

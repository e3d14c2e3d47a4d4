import { testSystemBoots } from '../lib/system-boots.ts'

await testSystemBoots('bios', 8, 600_000)
await testSystemBoots('uefi', 4, 600_000)
await testSystemBoots('uefi', 8, 900_000)

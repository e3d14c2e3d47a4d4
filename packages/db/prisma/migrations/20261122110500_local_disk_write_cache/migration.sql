-- Writes that go to the device's memory, and what does not fit to a disk of its own.
ALTER TYPE "WriteCacheClass" ADD VALUE 'device_ram_local_disk' BEFORE 'edge';

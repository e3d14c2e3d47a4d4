-- AlterEnum
ALTER TYPE "BootOutcome" ADD VALUE 'local_disk';

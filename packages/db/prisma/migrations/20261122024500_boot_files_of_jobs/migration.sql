-- What a version that is imported or sealed boots with, where that is not taken from its disk.
CREATE TYPE "GivenBootFiles" AS ENUM ('parent', 'none');
ALTER TABLE "store_job" ADD COLUMN "boot_files" "GivenBootFiles";

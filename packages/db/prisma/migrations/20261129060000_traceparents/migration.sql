-- The span of a caller that ordered a start: apps/api/src/boot/export/find-causing-span.ts.
ALTER TABLE power_on ADD COLUMN traceparent TEXT CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$');
ALTER TABLE power_order ADD COLUMN traceparent TEXT CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$');
ALTER TABLE schedule_run ADD COLUMN traceparent TEXT CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$');

-- W3C Trace Context of what the event came of; null where nobody collects traces.
ALTER TABLE "webhook_event" ADD COLUMN "traceparent" TEXT;

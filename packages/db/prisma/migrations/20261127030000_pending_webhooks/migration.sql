-- outside of a transaction
CREATE INDEX CONCURRENTLY webhook_delivery_pending ON webhook_delivery (organization_id, endpoint_id, due_at)
  WHERE state = 'pending'::"WebhookDeliveryState";

//! HTTP between device and edge, without TCP: bytes arrive whole and in order or not at all, a lost
//! segment costs time, and a restart of the edge ends the connection. A device has one connection.

const std = @import("std");
const base = @import("base");
const agent = @import("agent");
const core = @import("core");
const EdgeNode = @import("edge_node.zig");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("network.zig").Network;
const Device = core.device.Device;
const Link = EventQueue.Link;

pub const HttpLink = @This();

const version_look_us = 20 * std.time.us_per_ms;

const piece_size = 16 * 1024;
const connect_retry_us = std.time.us_per_s;
const resend_us = 200 * std.time.us_per_ms;
/// Segments in a piece: any of them may be lost.
const segments = 11;

serial: u32 = 0,
is_open: bool = false,
request: [Device.http_request_size_max]u8 = undefined,
request_size: u16 = 0,
to: base.Endpoint = .{ .ip = .zero, .port = 0 },
edge_generation: u32 = 0,
response: ?EdgeNode.Response = null,
head: [128]u8 = undefined,
head_size: u8 = 0,
is_head_sent: bool = false,
text: [agent.response.text_size_max]u8 = undefined,
sent: u64 = 0,

pub fn open(
    http: *HttpLink,
    fabric: *Fabric,
    link: Link,
    to: base.Endpoint,
    request: []const u8,
) void {
    http.serial += 1;
    http.to = to;
    http.is_open = true;
    http.response = null;
    http.sent = 0;
    http.is_head_sent = false;
    @memcpy(http.request[0..request.len], request);
    http.request_size = @intCast(request.len);
    // SYN, SYN with ACK, request.
    http.plan(fabric, link, 3 * fabric.links[link].faults.delay_us, .request);
}

pub fn close(http: *HttpLink) void {
    http.is_open = false;
}

/// Takes the next step of this connection. Bytes for the device go to `device`.
pub fn step(
    http: *HttpLink,
    fabric: *Fabric,
    edge: *EdgeNode,
    device: *Device,
    link: Link,
    what: EventQueue.HttpStep,
) void {
    const state = &fabric.links[link];
    switch (what) {
        .request => {
            if (state.is_cut[0] or isLost(fabric, link, 1))
                return http.plan(fabric, link, connect_retry_us, .request);
            const peer = state.ip() orelse return;
            const request = http.request[0..http.request_size];
            const response = edge.respond(request, peer, &http.text) orelse
                return http.plan(fabric, link, state.faults.delay_us, .closed);
            // The connection stays open. The host asks again when a version has been opened.
            if (response.waits_for_version)
                return http.plan(fabric, link, version_look_us, .request);
            const head = std.mem.print(
                &http.head,
                "HTTP/1.1 {d} -\r\ncontent-length: {d}\r\n\r\n",
                .{ response.status, response.body_size },
            ) catch unreachable;
            http.head_size = @intCast(head.len);
            http.response = response;
            http.edge_generation = edge.generation;
            http.plan(fabric, link, state.faults.delay_us, .piece);
        },
        .piece => {
            if (state.is_cut[0]) return http.plan(fabric, link, resend_us, .piece);
            if (edge.process == null or edge.generation != http.edge_generation)
                return http.plan(fabric, link, state.faults.delay_us, .closed);
            if (isLost(fabric, link, segments))
                return http.plan(fabric, link, resend_us, .piece);
            http.deliverPiece(fabric, edge, device, link);
        },
        .closed => {
            http.is_open = false;
            device.httpClosed(fabric.now_us);
        },
    }
}

fn deliverPiece(
    http: *HttpLink,
    fabric: *Fabric,
    edge: *EdgeNode,
    device: *Device,
    link: Link,
) void {
    const response = &http.response.?;
    if (!http.is_head_sent) {
        http.is_head_sent = true;
        device.receiveHttp(fabric.now_us, http.head[0..http.head_size]);
    }
    const size: usize = @intCast(@min(piece_size, response.body_size - http.sent));
    const filler: [piece_size]u8 = @splat('#');
    const bytes = if (response.text) |text|
        text[@intCast(http.sent)..][0..size]
    else
        filler[0..size];
    const is_first = http.sent == 0;
    http.sent += size;
    const is_last = http.sent == response.body_size;
    if (size > 0) device.receiveHttp(fabric.now_us, bytes);
    edge.progress(response, .{ .size = size, .is_first = is_first, .is_last = is_last });
    fabric.trace.note(http.sent);
    const faults = &fabric.links[link].faults;
    if (is_last)
        http.plan(fabric, link, faults.delay_us, .closed)
    else
        http.plan(fabric, link, @max(1, size * 8 / faults.bits_per_us), .piece);
}

fn isLost(fabric: *Fabric, link: Link, count: u32) bool {
    const faults = &fabric.links[link].faults;
    for (0..count) |_| if (fabric.prng.chance(faults.loss_per_mille, 1000)) return true;
    return false;
}

fn plan(
    http: *const HttpLink,
    fabric: *Fabric,
    link: Link,
    after_us: u64,
    what: EventQueue.HttpStep,
) void {
    fabric.plan(
        fabric.now_us + after_us,
        .{ .http = .{ .link = link, .serial = http.serial, .step = what } },
    );
}

//! Differences at the control plane (packages/proto/UPLINK.md, "Differences"): gets a list or a
//! piece by ranges over the signed uplink. The outcome says what the plan of the fetch makes of an
//! answer.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const TransferThread = @import("transfer_thread.zig");
const UplinkClient = @import("../uplink/client.zig");
const PartSize = core.difference.PartSize;
const RateLimit = core.difference.RateLimit;
const Outcome = core.difference.FetchPlan.Outcome;

pub const ControlPlaneSource = @This();

const request_timeout_ms = 60_000;

thread: *TransferThread,
client: UplinkClient,
rate: RateLimit = .{},
part: PartSize = .{},

pub fn init(thread: *TransferThread) ControlPlaneSource {
    const context = &thread.context;
    return .{
        .thread = thread,
        .client = .init(context.gpa, context.io, context.client_options),
    };
}

pub fn deinit(source: *ControlPlaneSource) void {
    source.client.deinit();
    source.* = undefined;
}

/// Fills `buffer` with the list of the difference.
pub fn getList(source: *ControlPlaneSource, id: base.Uuid, buffer: []u8) Outcome {
    var path: [96]u8 = undefined;
    return source.get(
        std.mem.print(&path, "/edge/v1/differences/{f}/list", .{id}) catch unreachable,
        buffer,
    );
}

/// Fills `buffer` with a piece of this size.
pub fn getPiece(source: *ControlPlaneSource, id: base.Uuid, index: u32, buffer: []u8) Outcome {
    var path: [96]u8 = undefined;
    return source.get(
        std.mem.print(&path, "/edge/v1/differences/{f}/pieces/{d}", .{ id, index }) catch
            unreachable,
        buffer,
    );
}

fn get(source: *ControlPlaneSource, path: []const u8, buffer: []u8) Outcome {
    var size: usize = 0;
    while (size < buffer.len) {
        source.thread.waitForRate(&source.rate);
        if (source.thread.isAbandoned()) return .unreachable_source;
        source.client.key = source.thread.context.rotation.key();
        const last = @min(size + source.part.next(source.rate.bytes_per_s), buffer.len) - 1;
        const begun_ms = TransferThread.nowMs();
        const answer = source.client.requestEncoded(
            .GET,
            path,
            .{ .bytes = "", .range = .{ .first = size, .last = last } },
            request_timeout_ms,
            buffer[size..],
        ) catch {
            source.part.onLost();
            return .unreachable_source;
        };
        source.rate.spend(answer.body.len, sys.monotonicUs());
        source.thread.count(.from_control_plane, answer.body.len);
        switch (answer.status) {
            // All of it, from a control plane that gives no parts.
            200 => return if (size == 0 and answer.body.len == buffer.len) .taken else .wrong,
            206 => {
                if (answer.body.len == 0 or answer.body.len > last - size + 1) return .wrong;
                source.part.onCame(TransferThread.nowMs() - begun_ms);
                size += answer.body.len;
            },
            404 => return .gone,
            429, 500...599 => return .{
                .later = (answer.retry_after_s orelse 1) *| std.time.ms_per_s,
            },
            else => return .refused,
        }
    }
    return .taken;
}

//! Serves `/metrics` on a separate address, in a separate thread with fixed memory: one scraper at
//! a time, each with seconds to send its request and to read its answer. Neither slow scrapers nor
//! many of them reach the packet loop.

const std = @import("std");
const base = @import("base");
const http_request = @import("wire").http_request;
const metrics_page = @import("page.zig");
const machine_facts = @import("machine_facts.zig");
const ReportLog = @import("../files/report_log.zig").ReportLog;
const UplinkLink = @import("../uplink/link.zig");
const sockets = @import("../net/sockets.zig");
const sys = @import("../sys.zig");
const PiecePacker = @import("../stream/piece_packer.zig");
const ProfileThread = @import("../files/profile_thread.zig");
const StoreWorker = @import("../uplink/store_worker.zig");
const linux = std.os.linux;

/// For each read from and each write to a scraper.
const wait_limit_s = 2;
/// Pieces in which a head may arrive.
const reads_max = 8;

pub const MetricsServer = @This();

page: *metrics_page.MetricsPage,
started_us: u64,
/// These are null without a control plane.
link: ?*UplinkLink = null,
log: ?*ReportLog = null,
epoch: u64 = 0,
store_fd: ?i32 = null,
/// Null without a control plane.
store_worker: ?*StoreWorker = null,
profiles: ?*ProfileThread = null,
packer: ?*PiecePacker = null,
listener: i32,
text: [metrics_page.size_max]u8 = undefined,

pub fn open(address: base.Endpoint) sockets.OpenError!i32 {
    return sockets.openListener(address);
}

/// Runs until the process ends.
pub fn start(server: *MetricsServer) std.Thread.SpawnError!void {
    const thread = try std.Thread.spawn(.{ .stack_size = 256 << 10 }, run, .{server});
    thread.detach();
}

fn run(server: *MetricsServer) void {
    while (true) {
        var waiting: [1]linux.pollfd =
            .{.{ .fd = server.listener, .events = linux.POLL.IN, .revents = 0 }};
        _ = sys.check(linux.poll(&waiting, 1, -1)) catch |err| switch (err) {
            error.Interrupted, error.WouldBlock => continue,
            error.SystemCallFailed => return,
        };
        const fd: i32 = @intCast(sys.check(
            linux.accept4(server.listener, null, null, linux.SOCK.CLOEXEC),
        ) catch continue);
        defer sys.close(fd);
        server.serve(fd);
    }
}

fn serve(server: *MetricsServer, fd: i32) void {
    const limit: linux.timeval = .{ .sec = wait_limit_s, .usec = 0 };
    for ([_]u32{ linux.SO.SNDTIMEO_NEW, linux.SO.RCVTIMEO_NEW }) |option| _ =
        linux.setsockopt(fd, linux.SOL.SOCKET, option, @ptrCast(&limit), @sizeOf(linux.timeval));
    var input: [http_request.request_size_max]u8 = undefined;
    var size: usize = 0;
    for (0..reads_max) |_| {
        const count = sys.check(linux.read(fd, input[size..].ptr, input.len - size)) catch return;
        if (count == 0) return;
        size += count;
        switch (http_request.parse(input[0..size])) {
            .incomplete => {},
            .problem => |problem| return refuse(fd, problem.status()),
            .request => |request| return server.answer(fd, &request),
        }
    }
}

fn answer(server: *MetricsServer, fd: i32, request: *const http_request.Request) void {
    if (!std.mem.eql(u8, request.target, "/metrics")) return refuse(fd, 404);
    if (request.method == .post) return refuse(fd, 405);
    var writer: std.Io.Writer = .fixed(&server.text);
    const figures = server.page.get();
    metrics_page.render(&writer, &figures, server.others()) catch return refuse(fd, 500);
    const body = writer.buffered();
    var buffer: [256]u8 = undefined;
    const head = std.mem.print(
        &buffer,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n" ++
            "Content-Length: {d}\r\nConnection: close\r\n\r\n",
        .{body.len},
    ) catch unreachable;
    sendAll(fd, head) catch return;
    if (request.method == .get) sendAll(fd, body) catch return;
}

fn others(server: *MetricsServer) metrics_page.OtherFigures {
    return .{
        .uptime_us = sys.monotonicUs() -| server.started_us,
        .clock_ms = sys.unixMs(),
        .uplink = if (server.link) |link| .{
            .is_up = link.is_answered.load(.monotonic),
            .report_backlog = if (server.log) |log| log.backlog() else 0,
            .losses = if (server.log) |log| log.losses() else null,
            .state = link.above() orelse .{},
            .epoch = server.epoch,
        } else null,
        .machine = if (server.store_fd) |fd| machine_facts.read(fd) else null,
        .warmed_bytes = if (server.profiles) |profiles| profiles.warmedBytes() else null,
        .answer_pieces = if (server.packer) |packer| .of(packer) else null,
        .store = if (server.store_worker) |worker| storeFigures(worker) else null,
    };
}

fn storeFigures(worker: *StoreWorker) ?metrics_page.OtherFigures.Store {
    const figures = worker.findings.figures();
    return if (figures.is_known) .{
        .versions = figures.versions,
        .damaged = figures.damaged,
        .packing_done = worker.findings.packing_done.load(.monotonic),
        .packing_total = worker.findings.packing_total.load(.monotonic),
    } else null;
}

fn refuse(fd: i32, status: u16) void {
    var buffer: [128]u8 = undefined;
    const head = std.mem.print(
        &buffer,
        "HTTP/1.1 {d} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        .{status},
    ) catch unreachable;
    sendAll(fd, head) catch return;
}

/// A scraper that is gone must not end the process.
fn sendAll(fd: i32, bytes: []const u8) sys.Error!void {
    var sent: usize = 0;
    while (sent < bytes.len) {
        const rest = bytes[sent..];
        sent += try sys.check(linux.sendto(fd, rest.ptr, rest.len, linux.MSG.NOSIGNAL, null, 0));
    }
}

//! What an enrolled edge keeps of its boots beside their reports, and sends once they are over: the
//! packets before their stream, and what they read.

const std = @import("std");
const host = @import("host");
const Complaint = @import("../complaint.zig");
const Edge = @import("../edge.zig");
const Error = Complaint.Error || error{OutOfMemory};

/// Nothing is captured where nothing is heard, or where nobody wants it.
pub fn prepareCaptures(edge: *Edge, complaint: *Complaint) Error!void {
    const is_alone = edge.options.isAlone();
    if (edge.loop.watch.listeners.len == 0 or (is_alone and edge.options.capture == null)) return;
    const files = try captureFiles(edge, complaint) orelse return;
    if (!is_alone) edge.waiting_captures = try captureFiles(edge, complaint);
    edge.captures = .{
        .store = try host.BootCaptures.allocate(edge.gpa),
        .files = files,
        // Until the control plane has sent what it wants.
        .wanted = if (is_alone) .always else .failed,
        .written = Edge.written,
        .context = edge,
    };
    edge.loop.watch.captures = &edge.captures.?;
}

/// Null: the disk does not take them.
fn captureFiles(edge: *const Edge, complaint: *Complaint) Error!?host.FilesOfBoots {
    const io = edge.init.io;
    if (edge.options.capture) |path| {
        const options: std.Io.Dir.CreateDirPathOpenOptions =
            .{ .open_options = .{ .iterate = true } };
        const dir = std.Io.Dir.cwd().createDirPathOpen(io, path, options) catch
            return complaint.set(
                "The directory for captures {s} cannot be created or written.",
                .{path},
            );
        return .{ .io = io, .dir = dir, .kind = .pcap, .limits = host.BootCaptures.limits_kept };
    }
    return bootFiles(edge, "captures", .pcap, host.BootCaptures.limits_waiting);
}

/// What boots read is kept where a control plane asks for it, and a store has the versions.
pub fn prepareReads(edge: *Edge, complaint: *Complaint) Error!void {
    if (edge.store == null) return;
    const data_path = edge.options.data.?;
    const arena = edge.init.arena.allocator();
    const lists = bootFiles(edge, "reads", .reads, host.BootReads.lists_limits) orelse return;
    const kept = "files-read";
    const reads = try edge.gpa.create(host.BootReads);
    reads.* = .{
        .gpa = edge.gpa,
        .io = edge.init.io,
        .lists = lists,
        .reports = bootFiles(edge, kept, .json, host.BootReads.reports_limits) orelse return,
        .lists_path = try std.fs.path.join(arena, &.{ data_path, "reads" }),
        .reports_path = try std.fs.path.join(arena, &.{ data_path, kept }),
        .store_path = edge.options.store orelse
            try std.fs.path.join(arena, &.{ data_path, "store" }),
        .written = Edge.written,
        .context = edge,
    };
    edge.waiting_reads = bootFiles(edge, kept, .json, host.BootReads.reports_limits);
    edge.boots.reads = try host.BootReads.allocate(edge.gpa);
    edge.reads = reads;
    reads.start() catch
        return complaint.set("The thread of boots' reads cannot be started on this system.", .{});
}

/// Null: the disk does not take them.
fn bootFiles(
    edge: *const Edge,
    name: []const u8,
    kind: host.FilesOfBoots.Kind,
    limits: host.FilesOfBoots.Limits,
) ?host.FilesOfBoots {
    const dir = edge.data.?.subDir(name) catch {
        host.health.set(.other_files_not_kept, true);
        return null;
    };
    return .{ .io = edge.init.io, .dir = dir, .kind = kind, .limits = limits };
}

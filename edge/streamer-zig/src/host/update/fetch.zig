//! Fetches one release from the control plane: its time, the metadata, the program, in this order
//! and each judged by core/update before the next. Blocks its thread.

const std = @import("std");
const builtin = @import("builtin");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const DataDir = @import("../files/data_dir.zig");
const ReleaseSlots = @import("release_slots.zig");
const UplinkClient = @import("../uplink/client.zig");
const Allocator = std.mem.Allocator;
const Cause = core.update.Record.Cause;
const Client = core.update.Client;
const Download = core.update.Download;
const signed_time = core.update.signed_time;

const request_timeout_ms = 20_000;
/// As large as no program of an edge.
const program_size_max = 256 << 20;
/// The largest metadata, and what JSON adds to an answer's own.
const answer_size_max = 512 << 10;

/// The root that enrolment has pinned.
pub const root_name = "update-root.json";
/// The metadata of the last update, all in one file.
const metadata_name = "update-metadata";

pub const Fetch = struct {
    /// Holds everything of one fetch: `Client.memory_max` and more.
    arena: Allocator,
    client: *UplinkClient,
    data: *const DataDir,
    slots: ReleaseSlots,

    const Result = error{Failed}!void;

    /// `cause` is set on failure.
    pub fn run(fetch: *Fetch, version: []const u8, cause: *Cause) Result {
        const stored = fetch.loadStored() orelse return failed(cause, .no_root);
        const now_s = fetch.askTime() catch return failed(cause, .no_time);
        var client = Client.begin(fetch.arena, stored, now_s) catch
            return failed(cause, .metadata_refused);
        const result = fetch.update(&client);
        // Also after a refusal: what was right until then counts.
        fetch.store(&client.stored) catch return failed(cause, .no_space);
        result catch |err| return failed(cause, switch (err) {
            error.NoAnswer => .no_answer,
            error.Expired => .metadata_expired,
            else => .metadata_refused,
        });
        var buffer: [256]u8 = undefined;
        const path = std.mem.print(&buffer, "bootfarm-edge/{s}/{s}/bootfarm-edge", .{
            version, comptime core.uplink.message.archName(builtin.cpu.arch).?,
        }) catch unreachable;
        const target = client.target(path) orelse return failed(cause, .not_listed);
        var path_buffer: [Client.request_path_size_max]u8 = undefined;
        return fetch.download(
            target.requestPath(&path_buffer, client.root.is_consistent),
            .{ .size = target.size, .sha256 = target.sha256 },
            cause,
        );
    }

    fn failed(cause: *Cause, why: Cause) error{Failed} {
        cause.* = why;
        return error.Failed;
    }

    fn loadStored(fetch: *Fetch) ?Client.Stored {
        if (fetch.data.read(fetch.arena, metadata_name)) |text| {
            if (std.json.parseFromSliceLeaky(
                Client.Stored,
                fetch.arena,
                text,
                .{},
            )) |stored| return stored else |_| {}
        } else |_| {}
        const root = fetch.data.read(fetch.arena, root_name) catch return null;
        return .{ .root = root };
    }

    fn store(fetch: *Fetch, stored: *const Client.Stored) !void {
        const text = try std.json.Stringify.valueAlloc(fetch.arena, stored.*, .{});
        try fetch.data.write(metadata_name, text);
    }

    /// In seconds since 1970, by the key that this edge has pinned now.
    fn askTime(fetch: *Fetch) !u64 {
        const identity = try fetch.data.identity(fetch.arena);
        const key = try core.uplink.key_text.parse(identity.signingKey);
        var nonce: signed_time.Nonce = undefined;
        sys.random(&nonce);
        var body: [core.uplink.message.body_size_max]u8 = undefined;
        const nonce_text = core.uplink.key_text.write(nonce);
        const text = core.uplink.message.encode(.{ .nonce = @as([]const u8, &nonce_text) }, &body);
        var buffer: [core.uplink.message.body_size_max]u8 = undefined;
        const answer =
            try fetch.client.request(.POST, "/edge/v1/time", text, request_timeout_ms, &buffer);
        if (answer.status != 200) return error.NoAnswer;
        const parsed =
            try core.uplink.message.parse(signed_time.Answer, fetch.arena, answer.body);
        return signed_time.verify(&parsed, &nonce, key);
    }

    fn update(
        fetch: *Fetch,
        client: *Client,
    ) (Client.Refusal || error{NoAnswer})!void {
        const buffer = try fetch.arena.alloc(u8, answer_size_max);
        var name_buffer: [Client.name_size_max]u8 = undefined;
        while (client.request(&name_buffer)) |wanted| {
            var path_buffer: [128]u8 = undefined;
            const path = std.mem.print(
                &path_buffer,
                "/edge/v1/update/metadata/{s}",
                .{wanted.name},
            ) catch unreachable;
            const size: usize = @intCast(@min(wanted.size_max, buffer.len));
            const answer = fetch.client.request(
                .GET,
                path,
                "",
                request_timeout_ms,
                buffer[0..size],
            ) catch |err| return switch (err) {
                error.NoAnswer => error.NoAnswer,
                error.AnswerTooLarge => error.TooLarge,
            };
            try client.receive(switch (answer.status) {
                200 => answer.body,
                404 => null,
                else => return error.NoAnswer,
            });
        }
    }

    const Expected = struct { size: u64, sha256: [32]u8 };

    fn download(fetch: *Fetch, path: []const u8, expected: Expected, cause: *Cause) Result {
        if (expected.size > program_size_max) return failed(cause, .target_refused);
        var part = ReleaseSlots.Part.begin(fetch.slots) catch return failed(cause, .no_space);
        defer part.close();
        var download_: Download = .begin(expected.size, nowMs());
        const buffer = fetch.arena.alloc(u8, Download.piece_size_max) catch
            return failed(cause, .no_space);
        var target: [256]u8 = undefined;
        const url = std.mem.print(&target, "/edge/v1/update/targets/{s}", .{path}) catch
            return failed(cause, .target_refused);
        while (download_.size < expected.size) {
            const first = download_.size;
            const end = @min(first + download_.piece_size, expected.size);
            const asked_ms = nowMs();
            const answer = fetch.client.requestEncoded(
                .GET,
                url,
                .{ .bytes = "", .range = .{ .first = first, .last = end - 1 } },
                request_timeout_ms,
                buffer,
            ) catch |err| switch (err) {
                error.NoAnswer => if (download_.onNoAnswer())
                    continue
                else
                    return failed(cause, .no_answer),
                error.AnswerTooLarge => return failed(cause, .target_refused),
            };
            download_.onPiece(nowMs() - asked_ms);
            switch (answer.status) {
                206 => {},
                429, 500...599 => return failed(cause, .no_answer),
                else => return failed(cause, .target_refused),
            }
            if (answer.body.len == 0) return failed(cause, .target_refused);
            download_.receive(answer.body, nowMs()) catch |err| return failed(cause, switch (err) {
                error.TooLarge => .target_refused,
                error.TooSlow => .too_slow,
            });
            part.append(answer.body) catch return failed(cause, .no_space);
        }
        download_.end(&expected.sha256) catch return failed(cause, .target_refused);
        part.end() catch return failed(cause, .no_space);
    }
};

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

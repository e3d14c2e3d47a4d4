//! Decides how the image of an import is fetched by ranges, from the control plane (an upload) or
//! from a URL: what is asked next, what an answer means, when the fetch waits, starts again or has
//! failed. Pure; host/uplink/image_fetch.zig asks, writes and hashes.

const std = @import("std");
const base = @import("base");
const Download = @import("../update/download.zig");
const BackOff = @import("sender.zig").BackOff;
const assert = std.debug.assert;

pub const ImageFetch = @This();

source: Source,
/// Null: the first answer tells it.
size: ?u64,
/// Null: any bytes are taken.
sha256: ?[32]u8,
/// Bytes that are in the file.
held: u64,
/// Of these, bytes that an earlier process has left: a power cut may have lost a part of them.
inherited: u64,
pieces: Download,
back_off: BackOff = .{},
progress_ms: u64,
/// Names the content at a URL.
validator: Validator = .empty,
restarts: u32 = 0,

pub const Source = enum { upload, url };

/// An entity tag or a date for `If-Range` (RFC 9110, 13.1.5).
pub const Validator = base.BoundedArray(u8, validator_size_max);
const validator_size_max = 128;
/// Without a byte for so long, the source counts as gone.
const silence_max_ms = 60 * std.time.ms_per_min;
/// Space that stays free for devices' writes, beside the import itself.
pub const free_bytes_min = 256 << 20;
/// The content at a URL changes while it is fetched.
const restarts_max = 3;
/// Numbers of JSON are exact up to here.
const size_max = (1 << 53) - 1;

pub const Range = struct { first: u64, last: u64 };

/// `held`: bytes that an earlier process has left. Those of a URL count only with the validator of
/// their content and its size, by which the next answer shows whether it is still the same.
pub fn begin(
    options: struct {
        source: Source,
        size: ?u64,
        sha256: ?[32]u8,
        held: u64,
        validator: Validator = .empty,
    },
    now_ms: u64,
) ImageFetch {
    assert(options.source == .url or (options.size != null and options.sha256 != null));
    const is_named = options.source == .upload or options.validator.count > 0;
    const is_kept = if (options.size) |size| is_named and options.held <= size else false;
    const held = if (is_kept) options.held else 0;
    return .{
        .source = options.source,
        .size = if (held > 0 or options.source == .upload) options.size else null,
        .sha256 = options.sha256,
        .held = held,
        .inherited = held,
        .pieces = .begin(options.size orelse 0, now_ms),
        .progress_ms = now_ms,
        .validator = if (held > 0) options.validator else .empty,
    };
}

/// Returns the bytes to ask for; null: all are there.
pub fn next(fetch: *const ImageFetch) ?Range {
    const size = fetch.size orelse
        return .{ .first = fetch.held, .last = fetch.held + fetch.pieces.piece_size - 1 };
    assert(fetch.held <= size);
    if (fetch.held == size) return null;
    return .{
        .first = fetch.held,
        .last = @min(fetch.held + fetch.pieces.piece_size, size) - 1,
    };
}

pub const Answer = struct {
    status: u16,
    body_size: u64 = 0,
    /// `Content-Range`; empty: none.
    content_range: []const u8 = "",
    validator: Validator = .empty,
    retry_after_s: ?u32 = null,
};

pub const Step = union(enum) {
    /// The body is what was asked for.
    take,
    /// Ask again then.
    wait_until_ms: u64,
    /// The file is emptied, and everything asked again.
    start_again,
    /// See `location` of the answer.
    redirect,
    failed: Problem,
};

pub const Problem = enum {
    upload_gone,
    url_gone,
    refused,
    no_ranges,
    other_range,
    too_large,
    empty,
    changes,
    silent,
    other_bytes,
};

/// `took_ms`: from the question to the answer.
pub const Clock = struct { now_ms: u64, took_ms: u64, random: u64 };

/// What an answer to `asked` means.
pub fn onAnswer(
    fetch: *ImageFetch,
    asked: Range,
    answer: Answer,
    clock: Clock,
) Step {
    assert(asked.first == fetch.held and asked.last >= asked.first);
    switch (answer.status) {
        206 => {},
        200 => return if (fetch.source == .upload) .{ .failed = .other_range } //
        else if (fetch.held > 0) fetch.restart() else .{ .failed = .no_ranges },
        301, 302, 303, 307, 308 => if (fetch.source == .url) return .redirect,
        404, 410 => return .{ .failed = if (fetch.source == .upload) .upload_gone else .url_gone },
        416 => if (fetch.source == .url) return if (fetch.held > 0)
            fetch.restart()
        else
            .{ .failed = .empty },
        429, 500...599 => {
            if (fetch.isSilent(clock.now_ms)) return .{ .failed = .silent };
            const after_s = answer.retry_after_s orelse 1;
            fetch.back_off.wait(clock.now_ms, clock.random, after_s *| std.time.ms_per_s);
            return .{ .wait_until_ms = fetch.back_off.not_before_ms };
        },
        else => {},
    }
    if (answer.status != 206) return .{ .failed = .refused };
    if (answer.body_size == 0 or answer.body_size > asked.last - asked.first + 1)
        return .{ .failed = .other_range };
    if (fetch.source == .url) if (fetch.checkUrl(asked, answer)) |step| return step;
    assert(fetch.held + answer.body_size <= fetch.size.?);
    fetch.held += answer.body_size;
    fetch.progress_ms = clock.now_ms;
    fetch.back_off = .{};
    fetch.pieces.onPiece(clock.took_ms);
    return .take;
}

/// Null: the part is one of the file that the earlier parts are of.
fn checkUrl(fetch: *ImageFetch, asked: Range, answer: Answer) ?Step {
    const said = parseContentRange(answer.content_range) orelse
        return .{ .failed = .other_range };
    if (said.first != asked.first or said.last - said.first + 1 != answer.body_size)
        return .{ .failed = .other_range };
    if (said.size > size_max) return .{ .failed = .too_large };
    if (fetch.held > 0) {
        const is_same = said.size == fetch.size.? and
            std.mem.eql(u8, fetch.validator.constSlice(), answer.validator.constSlice());
        if (!is_same) return fetch.restart();
    } else {
        fetch.size = said.size;
        fetch.validator = answer.validator;
    }
    return null;
}

/// No answer came. Returns when to ask again; null: the source counts as gone.
pub fn onNoAnswer(fetch: *ImageFetch, now_ms: u64, random: u64) ?u64 {
    if (fetch.isSilent(now_ms)) return null;
    _ = fetch.pieces.onNoAnswer();
    fetch.back_off.fail(now_ms, random);
    return fetch.back_off.not_before_ms;
}

fn isSilent(fetch: *const ImageFetch, now_ms: u64) bool {
    return now_ms -| fetch.progress_ms >= silence_max_ms;
}

fn restart(fetch: *ImageFetch) Step {
    if (fetch.restarts == restarts_max) return .{ .failed = .changes };
    fetch.restarts += 1;
    assert(fetch.restarts <= restarts_max);
    fetch.forgetHeld();
    return .start_again;
}

fn forgetHeld(fetch: *ImageFetch) void {
    assert(fetch.inherited <= fetch.held);
    assert(fetch.source == .url or fetch.size != null);
    fetch.held = 0;
    fetch.inherited = 0;
    fetch.validator = .empty;
    if (fetch.source == .url) fetch.size = null;
}

pub const End = union(enum) { done, start_again, failed: Problem };

/// All bytes are there, and have this hash. Other bytes are fetched again once, if an earlier
/// process has left some of them.
pub fn onEnd(fetch: *ImageFetch, digest: *const [32]u8) End {
    assert(fetch.next() == null);
    const wanted = fetch.sha256 orelse return .done;
    if (std.mem.eql(u8, digest, &wanted)) return .done;
    const may_be_torn = fetch.inherited > 0;
    fetch.forgetHeld();
    return if (may_be_torn) .start_again else .{ .failed = .other_bytes };
}

/// Returns the free space that is needed for the rest; null: there is enough.
pub fn spaceNeeded(fetch: *const ImageFetch, available_bytes: u64) ?u64 {
    const size = fetch.size orelse fetch.held;
    const needed = (size - fetch.held) +| free_bytes_min;
    return if (available_bytes >= needed) null else needed;
}

const ContentRange = struct { first: u64, last: u64, size: u64 };

/// `bytes FIRST-LAST/SIZE` (RFC 9110, 14.4).
fn parseContentRange(text: []const u8) ?ContentRange {
    if (!std.ascii.startsWithIgnoreCase(text, "bytes ")) return null;
    const rest = text["bytes ".len..];
    const dash = std.mem.findScalar(u8, rest, '-') orelse return null;
    const slash = std.mem.findScalar(u8, rest, '/') orelse return null;
    if (slash < dash) return null;
    const range: ContentRange = .{
        .first = numberOf(rest[0..dash]) orelse return null,
        .last = numberOf(rest[dash + 1 .. slash]) orelse return null,
        .size = numberOf(rest[slash + 1 ..]) orelse return null,
    };
    return if (range.first <= range.last and range.last < range.size) range else null;
}

fn numberOf(text: []const u8) ?u64 {
    for (text) |byte| if (!std.ascii.isDigit(byte)) return null;
    return std.fmt.parseInt(u64, text, 10) catch null;
}

/// Returns what names the content: a strong entity tag, or else the date of its last change.
pub fn validatorOf(entity_tag: []const u8, last_modified: []const u8) Validator {
    const is_strong = std.mem.startsWith(u8, entity_tag, "\"") and entity_tag.len > 2;
    const text = if (is_strong) entity_tag else last_modified;
    for (text) |byte| if (!std.ascii.isPrint(byte)) return .empty;
    return Validator.fromSlice(text) catch .empty;
}

const testing = std.testing;
const kib = 1024;

fn upload(held: u64) ImageFetch {
    return begin(.{
        .source = .upload,
        .size = 1000 * kib,
        .sha256 = @splat(7),
        .held = held,
    }, 0);
}

fn fromUrl(sha256: ?[32]u8) ImageFetch {
    return begin(.{ .source = .url, .size = null, .sha256 = sha256, .held = 0 }, 0);
}

fn part(comptime range: []const u8, body_size: u64, tag: []const u8) Answer {
    return .{
        .status = 206,
        .body_size = body_size,
        .content_range = "bytes " ++ range,
        .validator = validatorOf(tag, ""),
    };
}

const soon: Clock = .{ .now_ms = 5, .took_ms = 5, .random = 0 };

test "an upload is fetched in growing parts to its end" {
    var fetch = upload(0);
    var asked: [4]u64 = undefined;
    for (&asked) |*size| {
        const range = fetch.next().?;
        size.* = range.last - range.first + 1;
        try testing.expectEqual(
            .take,
            fetch.onAnswer(range, .{ .status = 206, .body_size = size.* }, soon),
        );
    }
    try testing.expectEqual([4]u64{ 128 * kib, 256 * kib, 512 * kib, 104 * kib }, asked);
    try testing.expectEqual(null, fetch.next());
    try testing.expectEqual(.done, fetch.onEnd(&@splat(7)));
}

test "what an earlier process has left is kept, unless it is too much" {
    try testing.expectEqual(500 * kib, upload(500 * kib).next().?.first);
    try testing.expectEqual(null, upload(1000 * kib).next());
    try testing.expectEqual(0, upload(1000 * kib + 1).next().?.first);
}

test "other bytes are fetched again once if an earlier process has left some of them" {
    var fetch = upload(1000 * kib);
    try testing.expectEqual(.start_again, fetch.onEnd(&@splat(8)));
    try testing.expectEqual(0, fetch.next().?.first);
    fetch.held = fetch.size.?;
    try testing.expectEqual(Problem.other_bytes, fetch.onEnd(&@splat(8)).failed);
}

test "a source that is silent for an hour is gone, and progress begins the hour again" {
    var fetch = upload(0);
    try testing.expect(fetch.onNoAnswer(silence_max_ms - 1, 0).? >= silence_max_ms - 1);
    const range = fetch.next().?;
    const late: Clock = .{ .now_ms = silence_max_ms - 1, .took_ms = 5, .random = 0 };
    try testing.expectEqual(
        .take,
        fetch.onAnswer(range, .{ .status = 206, .body_size = 1 }, late),
    );
    try testing.expectEqual(1, fetch.next().?.first);
    try testing.expect(fetch.onNoAnswer(2 * silence_max_ms - 2, 0) != null);
    try testing.expectEqual(null, fetch.onNoAnswer(2 * silence_max_ms - 1, 0));
    const busy = fetch.onAnswer(fetch.next().?, .{ .status = 503 }, .{
        .now_ms = 2 * silence_max_ms,
        .took_ms = 1,
        .random = 0,
    });
    try testing.expectEqual(Problem.silent, busy.failed);
}

test "a busy source is asked again when it says, and a smaller part after silence" {
    var fetch = upload(0);
    const step = fetch.onAnswer(fetch.next().?, .{ .status = 503, .retry_after_s = 30 }, soon);
    try testing.expect(step.wait_until_ms >= 30_000);
    _ = fetch.onAnswer(fetch.next().?, .{ .status = 206, .body_size = 128 * kib }, soon);
    try testing.expectEqual(256 * kib, fetch.next().?.last + 1 - fetch.next().?.first);
    _ = fetch.onNoAnswer(10, 0);
    try testing.expectEqual(128 * kib, fetch.next().?.last + 1 - fetch.next().?.first);
}

test "answers that are no part of the upload end its fetch" {
    for ([_]struct { Answer, Problem }{
        .{ .{ .status = 206 }, .other_range },
        .{ .{ .status = 206, .body_size = 128 * kib + 1 }, .other_range },
        .{ .{ .status = 200, .body_size = 9 }, .other_range },
        .{ .{ .status = 404 }, .upload_gone },
        .{ .{ .status = 302 }, .refused },
        .{ .{ .status = 416 }, .refused },
        .{ .{ .status = 403 }, .refused },
    }) |case| {
        var fetch = upload(0);
        try testing.expectEqual(case[1], fetch.onAnswer(fetch.next().?, case[0], soon).failed);
    }
}

test "a URL tells the size, and its parts are of one content" {
    var fetch = fromUrl(null);
    const first = fetch.next().?;
    try testing.expectEqual(
        .take,
        fetch.onAnswer(first, part("0-99/300", 100, "\"a\""), soon),
    );
    try testing.expectEqual(Range{ .first = 100, .last = 299 }, fetch.next().?);
    try testing.expectEqualStrings("\"a\"", fetch.validator.constSlice());
    // Replaced meanwhile: by its tag, by its size, or since the server sends all of it.
    for ([_]Answer{
        part("100-299/300", 200, "\"b\""),
        part("100-299/301", 200, "\"a\""),
        .{ .status = 200, .body_size = 300 },
        .{ .status = 416 },
    }) |answer| {
        var changed = fetch;
        try testing.expectEqual(
            .start_again,
            changed.onAnswer(changed.next().?, answer, soon),
        );
        try testing.expectEqual(0, changed.next().?.first);
        try testing.expectEqual(null, changed.size);
    }
    try testing.expectEqual(
        .take,
        fetch.onAnswer(fetch.next().?, part("100-299/300", 200, "\"a\""), soon),
    );
    try testing.expectEqual(.done, fetch.onEnd(&@splat(1)));
}

test "what an earlier process has left of a URL is continued while its content is the same" {
    const kept = struct {
        fn begin(held: u64, tag: []const u8) ImageFetch {
            return ImageFetch.begin(.{
                .source = .url,
                .size = 300,
                .sha256 = null,
                .held = held,
                .validator = validatorOf(tag, ""),
            }, 0);
        }
    };
    var same = kept.begin(100, "\"a\"");
    try testing.expectEqual(Range{ .first = 100, .last = 299 }, same.next().?);
    try testing.expectEqual(
        .take,
        same.onAnswer(same.next().?, part("100-299/300", 200, "\"a\""), soon),
    );
    try testing.expectEqual(.done, same.onEnd(&@splat(1)));
    for ([_]Answer{
        part("100-299/300", 200, "\"b\""),
        part("100-299/301", 200, "\"a\""),
        .{ .status = 200, .body_size = 300 },
    }) |answer| {
        var other = kept.begin(100, "\"a\"");
        try testing.expectEqual(.start_again, other.onAnswer(other.next().?, answer, soon));
        try testing.expectEqual(0, other.next().?.first);
    }
    // Whole already; and bytes whose content has no name, or that are more than the content.
    try testing.expectEqual(null, kept.begin(300, "\"a\"").next());
    for ([_]ImageFetch{ kept.begin(100, ""), kept.begin(301, "\"a\"") }) |fetch| {
        try testing.expectEqual(0, fetch.next().?.first);
        try testing.expectEqual(null, fetch.size);
    }
}

test "a URL whose content changes again and again is given up" {
    var fetch = fromUrl(null);
    for (0..restarts_max + 1) |round| {
        _ = fetch.onAnswer(fetch.next().?, part("0-99/300", 100, "\"a\""), soon);
        const step = fetch.onAnswer(fetch.next().?, part("100-299/300", 200, "\"b\""), soon);
        if (round < restarts_max)
            try testing.expectEqual(.start_again, step)
        else
            try testing.expectEqual(Problem.changes, step.failed);
    }
}

test "answers of a URL that cannot be continued end the fetch" {
    for ([_]struct { Answer, Problem }{
        .{ .{ .status = 200, .body_size = 9 }, .no_ranges },
        .{ .{ .status = 416 }, .empty },
        .{ .{ .status = 404 }, .url_gone },
        .{ .{ .status = 410 }, .url_gone },
        .{ .{ .status = 401 }, .refused },
        .{ .{ .status = 206, .body_size = 9 }, .other_range },
        .{ part("1-9/300", 9, ""), .other_range },
        .{ part("0-9/300", 9, ""), .other_range },
        .{ part("0-8/*", 9, ""), .other_range },
        .{ part("0-8/8", 9, ""), .other_range },
        .{ part("0-8/9007199254740993", 9, ""), .too_large },
    }) |case| {
        var fetch = fromUrl(null);
        try testing.expectEqual(case[1], fetch.onAnswer(fetch.next().?, case[0], soon).failed);
    }
    var fetch = fromUrl(null);
    try testing.expectEqual(.redirect, fetch.onAnswer(fetch.next().?, .{ .status = 302 }, soon));
    try testing.expectEqual(null, fromUrl(null).sha256);
}

test "other bytes than the caller of a URL announced are refused" {
    var fetch = fromUrl(@splat(7));
    _ = fetch.onAnswer(fetch.next().?, part("0-99/100", 100, ""), soon);
    try testing.expectEqual(Problem.other_bytes, fetch.onEnd(&@splat(8)).failed);
}

test "the rest has to fit beside what devices write" {
    const fetch = upload(400 * kib);
    const needed = 600 * kib + free_bytes_min;
    try testing.expectEqual(null, fetch.spaceNeeded(needed));
    try testing.expectEqual(needed, fetch.spaceNeeded(needed - 1));
}

test "only a strong tag or a date names a content" {
    for ([_][3][]const u8{
        .{ "\"a\"", "date", "\"a\"" },
        .{ "W/\"a\"", "date", "date" },
        .{ "", "", "" },
        .{ "\"", "", "" },
        .{ "", "d\r\nx: y", "" },
        .{ &@as([129]u8, @splat('"')), "date", "" },
    }) |case| {
        const validator = validatorOf(case[0], case[1]);
        try testing.expectEqualStrings(case[2], validator.constSlice());
    }
}

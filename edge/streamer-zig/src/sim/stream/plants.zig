//! Bugs that are planted into the stream's proof, one at a time; each must be found. They change the state and the events of the real
//! machines where the machine's own mistake would show (`link.zig`), or what the simulated edge does with them.

const std = @import("std");

pub const Plant = enum {
    none,
    // At the device.
    /// A read has the number of the one before, whose late fragments are taken for its own.
    request_number_used_again,
    /// A flush ends at once.
    flush_ends_at_once,
    /// A resumption takes writes that are under way for done.
    resumption_forgets_writes,
    /// Time-outs stay as short as they were.
    timeout_never_doubles,
    /// A device asks for more than the edge allows.
    outstanding_unbounded,
    /// Of writes that overlap the later one does not wait.
    overlapping_writes_together,
    /// A device forgets which order it has taken.
    order_taken_again,
    /// It wants to be called at once, and has nothing to do.
    deadline_in_the_past,
    /// It waits for its edge, however long that says nothing.
    never_leaves,
    /// It waits for another edge that says nothing, however many more it knows.
    silent_edge_never_passed_over,
    /// Another edge that says nothing is waited for as long as one that is there.
    silent_edge_keeps_its_turn,
    /// What the network says of its edge is not heard.
    refusal_unheard,
    /// It forgets that its writes are at one edge alone.
    bound_asks_others,
    /// What it has said to one edge it does not say to the next.
    ready_not_said_again,
    report_not_said_again,
    /// A session at another edge goes on with the keys of the one before.
    keys_go_along,
    /// The size of the WELCOME that came says nothing to it.
    shown_size_unseen,
    /// It asks for as large packets as ever where none of them comes.
    size_never_lowered,
    /// It never asks whether the edge is there that says nothing of a write.
    narrow_way_unfound,
    // At the edge.
    /// A ticket is taken of a boot whose writes are at another edge.
    ticket_of_writes_taken,
    /// Questions whether it is there wait for its disk.
    probe_behind_disk,
    /// A WELCOME that is said again puts the counter back.
    counter_begins_anew,
    large_welcome_left_out,
    fragment_at_wrong_index,
    last_fragment_left_out,
    /// A repeated read is answered with the fragments beside those that it names.
    repeat_of_wrong_range,
    /// Every hundredth read is of another version.
    another_version_read,
    /// What another device wrote is read.
    another_device_read,
    /// What lies below is read in place of what was written.
    base_read_after_write,
    cookie_unchecked,
    /// An address without a cookie gets more than it sent.
    answer_too_long,
    source_unchecked,
    token_opens_twice,
    /// A request is carried out again half a second later.
    write_carried_out_again,
    /// What is far behind, or has ended, is carried out.
    late_write_carried_out,
    /// It is said to be done before it is.
    done_before_it_is,
    /// Only the first 512 bytes of a write are kept.
    write_kept_in_part,
    /// A write counts as whole before all its fragments have come.
    whole_without_a_fragment,
    discard_does_nothing,
    /// Acknowledged writes of the last moment are gone after a crash.
    lost_in_a_crash,
    /// A write cache that is gone is begun anew without a word.
    lost_cache_begun_anew,
    ready_counts_again,
    report_not_heard,
    drop_not_counted,

    /// As in `--plant`: dashes for underscores.
    pub fn parse(text: []const u8) ?Plant {
        var buffer: [64]u8 = undefined;
        if (text.len > buffer.len) return null;
        const name = buffer[0..text.len];
        @memcpy(name, text);
        std.mem.replaceScalar(u8, name, '-', '_');
        return std.meta.stringToEnum(Plant, name);
    }

    pub fn format(plant: Plant, writer: *std.Io.Writer) std.Io.Writer.Error!void {
        for (@tagName(plant)) |byte| try writer.writeByte(if (byte == '_') '-' else byte);
    }
};

"""A team of threads, as LLVM text: fork and join, with nothing but the C library beneath.

A task is `void @task(ptr frame, i64 chunk, i64 worker)`, called once for each chunk from 0 on. Whoever is free takes
the next chunk, the caller included, so that a worker that the system lets wait costs nothing but its help: the caller
leaves when all chunks are done, and waits only for workers that are inside of one.

`ticket` counts up when a task opens (it is odd then) and when it closes. A worker enters by adding 1 to `active` and
looks at the ticket again; the caller closes the task and waits until `active` is 0. Both are sequentially consistent,
so that a worker either is seen by the caller or sees that there is nothing to do. Between tasks a worker spins, then
yields its processor, then sleeps on a condition variable until a caller sees it in `sleepers`.
"""

from __future__ import annotations

FORK, WORKER, INITIALISE, STOP = "tempo_fork", "tempo_worker", "tempo_team", "tempo_stop"

TEAM_BYTES = 1024
"""The memory of a team, zero at first."""

CHUNKS_PER_WORKER = 4
"""Into how many parts a grid is cut for each worker: the last ones to end are waited for, and each costs a call."""

SPINS, YIELDS, WAITING_SPINS = 2_000, 200, 1_000
"""How often a worker looks for a task in a busy loop (tens of microseconds), then lets others run between two looks,
before it sleeps; and how often the caller looks for the last workers before it lets others run. Loops that never let
others run were up to twice as slow as one thread on a machine whose second processor was taken."""

TICKET = 64
_FIELDS = {
    "fork": 0, "threads": 8, "ticket": TICKET, "active": 128, "function": 192, "frame": 200, "chunks": 208, "next": 256,
    "sleepers": 320, "stopped": 328, "mutex": 384, "condition": 512,
}  # fmt: skip
"""Where the parts of a team lie; what different threads write lies in lines of its own."""


def field(name: str, team: str = "%team") -> str:
    """The instruction for the address of a part of a team."""
    return f"getelementptr i8, ptr {team}, i64 {_FIELDS[name]}"


def team_text(relax: str) -> str:
    """The module of a team's functions. `relax` is what a busy loop calls on this machine, if anything."""
    pause = f"call void {relax}" if relax else "; nothing to tell the processor"
    declaration = f"declare void {relax.replace('i32 1', 'i32')}" if relax else ""
    fields = "\n".join(f"  %{name} = {field(name)}" for name in _FIELDS)
    return f"""
{declaration}
declare i32 @sched_yield()
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define void @{INITIALISE}(ptr %team, i64 %count) {{
{fields}
  store ptr @{FORK}, ptr %fork
  store i64 %count, ptr %threads
  call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  call i32 @pthread_cond_init(ptr %condition, ptr null)
  ret void
}}

define void @{STOP}(ptr %team) {{
{fields}
  store atomic i64 1, ptr %stopped seq_cst, align 8
  call void @wake(ptr %team)
  ret void
}}

define internal void @wake(ptr %team) {{
{fields}
  call i32 @pthread_mutex_lock(ptr %mutex)
  call i32 @pthread_cond_broadcast(ptr %condition)
  call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}

define internal void @work(ptr %team, i64 %worker) {{
entry:
{fields}
  %task = load ptr, ptr %function
  %data = load ptr, ptr %frame
  %count = load i64, ptr %chunks
  br label %take
take:
  %chunk = atomicrmw add ptr %next, i64 1 seq_cst, align 8
  %left = icmp slt i64 %chunk, %count
  br i1 %left, label %run, label %done
run:
  call void %task(ptr %data, i64 %chunk, i64 %worker)
  br label %take
done:
  ret void
}}

define void @{FORK}(ptr %team, ptr %task, ptr %data, i64 %count) {{
entry:
{fields}
  store ptr %task, ptr %function
  store ptr %data, ptr %frame
  store i64 %count, ptr %chunks
  store i64 0, ptr %next
  %opened = atomicrmw add ptr %ticket, i64 1 seq_cst, align 8
  %asleep = load atomic i64, ptr %sleepers seq_cst, align 8
  %some = icmp sgt i64 %asleep, 0
  br i1 %some, label %rouse, label %own
rouse:
  call void @wake(ptr %team)
  br label %own
own:
  call void @work(ptr %team, i64 0)
  %closed = atomicrmw add ptr %ticket, i64 1 seq_cst, align 8
  br label %wait
wait:
  %looks = phi i64 [ 0, %own ], [ %more, %again ]
  %busy = load atomic i64, ptr %active seq_cst, align 8
  %joined = icmp eq i64 %busy, 0
  br i1 %joined, label %done, label %pausing
pausing:
  %more = add i64 %looks, 1
  %spin = icmp slt i64 %looks, {WAITING_SPINS}
  br i1 %spin, label %short, label %long
short:
  {pause}
  br label %again
long:
  call i32 @sched_yield()
  br label %again
again:
  br label %wait
done:
  ret void
}}

define void @{WORKER}(ptr %team, i64 %worker) {{
entry:
{fields}
  br label %fresh
fresh:
  %last = phi i64 [ 0, %entry ], [ %current, %worked ], [ %last, %slept ]
  br label %look
look:
  %looks = phi i64 [ 0, %fresh ], [ %more, %again ]
  %end = load atomic i64, ptr %stopped seq_cst, align 8
  %stop = icmp ne i64 %end, 0
  br i1 %stop, label %leave, label %ask
ask:
  %now = load atomic i64, ptr %ticket seq_cst, align 8
  %new = call i1 @is_new(i64 %now, i64 %last)
  br i1 %new, label %enter, label %idle
enter:
  %before = atomicrmw add ptr %active, i64 1 seq_cst, align 8
  %current = load atomic i64, ptr %ticket seq_cst, align 8
  %open = call i1 @is_new(i64 %current, i64 %last)
  br i1 %open, label %help, label %worked
help:
  call void @work(ptr %team, i64 %worker)
  br label %worked
worked:
  %after = atomicrmw sub ptr %active, i64 1 seq_cst, align 8
  br label %fresh
idle:
  %more = add i64 %looks, 1
  %spin = icmp slt i64 %looks, {SPINS}
  br i1 %spin, label %short, label %tired
short:
  {pause}
  br label %again
tired:
  %yield = icmp slt i64 %looks, {SPINS + YIELDS}
  br i1 %yield, label %long, label %sleep
long:
  call i32 @sched_yield()
  br label %again
again:
  br label %look
sleep:
  %count = atomicrmw add ptr %sleepers, i64 1 seq_cst, align 8
  call i32 @pthread_mutex_lock(ptr %mutex)
  br label %check
check:
  %seen = load atomic i64, ptr %ticket seq_cst, align 8
  %ended = load atomic i64, ptr %stopped seq_cst, align 8
  %same = icmp eq i64 %seen, %now
  %running = icmp eq i64 %ended, 0
  %nothing = and i1 %same, %running
  br i1 %nothing, label %doze, label %slept
doze:
  call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %check
slept:
  call i32 @pthread_mutex_unlock(ptr %mutex)
  %awake = atomicrmw sub ptr %sleepers, i64 1 seq_cst, align 8
  br label %fresh
leave:
  ret void
}}

define internal i1 @is_new(i64 %ticket, i64 %last) {{
  %bit = and i64 %ticket, 1
  %open = icmp ne i64 %bit, 0
  %other = icmp ne i64 %ticket, %last
  %new = and i1 %open, %other
  ret i1 %new
}}
"""

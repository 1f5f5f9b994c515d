# Does normalise.py turn words into the columns that its rules say, and is typed.csv what it makes of rows.csv?
import csv
import io
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import normalise  # noqa: E402

LLAMA = dict(framework="torchtitan FSDP2", model="llama3-8b", layers="32", hidden="4096", heads="32", kv_heads="8",
             ffn="14336", vocab="128256", seq_len="8192", params="8030261248", gpu="H100-SXM-80GB", n_gpus="8", tp="1",
             date="2025-03-20", zero_stage="3", precision="bf16 compute, fp32 params", micro_batch="1", outcome="ok")


def typed(**cells):
    return normalise.typed({**LLAMA, **cells})


class Normalise(unittest.TestCase):
    def expect(self, row, **settings):
        for setting, (value, origin) in settings.items():
            self.assertEqual((row[setting], row[setting + "_from"]), (value, origin), setting)

    def test_the_given_table_is_what_the_rules_make_of_the_given_rows(self):
        made = subprocess.run([sys.executable, "-B", HERE / "normalise.py", HERE / "rows.csv"], capture_output=True,
                              text=True, check=True).stdout
        kept = (HERE / "typed.csv").read_text(encoding="utf-8")
        self.assertEqual(list(csv.reader(io.StringIO(made))), list(csv.reader(io.StringIO(kept))))

    def test_who_published_a_row_and_what_it_is_called_changes_nothing(self):
        one, other = typed(id="a", source="x", url_or_path="y"), typed(id="b", source="torchtune", url_or_path="deepspeed")
        for column in one:
            if column != "id":
                self.assertEqual(one[column], other[column], column)

    def test_sequences_per_gpu_times_tensor_parallel(self):
        stated = normalise.STATED
        self.expect(typed(framework="DeepSpeed ZeRO-3 mp4", tp="4", micro_batch="8"), micro_batch=("32", stated))
        self.expect(typed(tp="4", micro_batch="8"), micro_batch=("8", stated))
        self.expect(typed(framework="Megatron-LM", tp="4", micro_batch="8"), micro_batch=("8", stated))
        self.expect(typed(framework="DeepSpeed", tp="4", n_gpus="8", micro_batch="8", notes="global batch 4"),
                    micro_batch=("2", stated))
        self.expect(typed(micro_batch=""), micro_batch=("1", normalise.ASSUMED))
        self.expect(typed(framework="ColossalAI", notes="DPO", micro_batch="4"), micro_batch=("8", normalise.DEFAULT))

    def test_frameworks(self):
        for words, sharding, expected in [("torchtitan FSDP2", "", "fsdp2"), ("Accelerate FSDP", "", "fsdp1"),
                                          ("anything", "FSDP2", "fsdp2"), ("PatrickStar", "", "gemini"),
                                          ("ColossalAI", "Gemini", "gemini"), ("ColossalAI", "zero2", "low_level_zero"),
                                          ("torchtitan SimpleFSDP", "", "graph_fsdp"), ("DeepSpeed", "ZeRO-1", "deepspeed"),
                                          ("Megatron-LM (core 0.14)", "", "megatron"), ("PyTorch DDP", "", "ddp"),
                                          ("something new", "", "other")]:
            self.assertEqual(typed(framework=words, sharding=sharding)["framework"], expected, words)

    def test_adapters(self):
        for cells, adapter in [(dict(precision="bf16 LoRA"), "lora"), (dict(notes="QLoRA; 8 steps"), "qlora"),
                               (dict(precision="nf4 QLoRA"), "qlora"), (dict(notes="lora_rank=16"), "lora"),
                               (dict(framework="litgpt LoRA FSDP"), "lora"), (dict(), "none")]:
            self.assertEqual(typed(**cells)["adapter"], adapter, cells)
        self.expect(typed(notes="lora_rank=16"), adapter_rank=("16", normalise.STATED))
        self.expect(typed(precision="bf16 LoRA"), adapter_rank=("8", normalise.ASSUMED))

    def test_what_a_row_leaves_open_is_said_to_be_its_framework_s_default(self):
        default, stated = normalise.DEFAULT, normalise.STATED
        self.expect(typed(), recompute=("none", default), loss=("eager", default), norms=("written_out", default),
                    optimizer_step=("fused", default), reshard_after_forward=("yes", default))
        self.expect(typed(ac_mode="unspecified"), recompute=("selective", default))
        self.expect(typed(ac_mode="full", compile="yes"), recompute=("block", stated), compile=("block", stated),
                    loss=("compiled", default), norms=("fused", default))
        self.expect(typed(date="2026-06", sharding="reshard_after_forward=never"), loss=("chunked", default),
                    reshard_after_forward=("no", stated))

    def test_figures(self):
        row = typed(peak_mem_gib="1.5", mem_kind="reserved", peak_mem2_gib="2", mem2_kind="torch peak GB")
        self.assertEqual((row["memory_kind"], row["memory_bytes"]), ("reserved", str(3 << 29)))
        self.assertEqual((row["memory2_kind"], row["memory2_bytes"]), ("allocated", "2000000000"))
        self.assertEqual(typed(peak_mem_gib="3", mem_kind="host RSS")["memory_bytes"], "")
        self.assertEqual(typed(outcome="OOM (dash in table)")["outcome"], "out_of_memory")
        self.assertEqual(typed(step_time_s="4")["tokens_per_second"], "2048.0")


if __name__ == "__main__":
    unittest.main()

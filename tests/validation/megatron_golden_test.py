# Does megatron_golden.py say of a run what its arguments say, and why it leaves one out?
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import megatron_golden as golden  # noqa: E402

RUN = dict(model="gpt", test_case="gpt3_7b", golden="dev_dgx_h100", platform="dgx_h100", nodes="1", gpus_per_node="8",
           date="2025-10-12", latest="1", iteration_time_median_s="2.0", iteration_time_min_s="1.9", iteration_points="12")
ARGUMENTS = {"--num-layers": 32, "--hidden-size": 4096, "--num-attention-heads": 32, "--seq-length": 8192, "--bf16": True,
             "--micro-batch-size": 1, "--global-batch-size": 8, "--pipeline-model-parallel-size": 4,
             "--num-layers-per-virtual-pipeline-stage": 1, "--vocab-size": 131072, "--use-distributed-optimizer": True}


def expect(test, row, **settings):
    for setting, value in settings.items():
        test.assertEqual(row[setting], value, setting)


class MegatronGolden(unittest.TestCase):
    def test_a_run_is_its_arguments(self):
        typed = golden.typed_of(RUN, ARGUMENTS)
        expect(self, typed, code="megatron", gpu="h100", ranks="8", pipeline_parallel="4", pipeline_chunks="8", ffn="16384",
               accumulation="4", stage="1", vocab="131072", kv_heads="32", recompute="none", float8="none", attention="flash")
        # 8 sequences of 8,192 tokens on 8 GPUs in 2 s
        self.assertEqual(golden.speed(typed, 2.0), 4096)

    def test_attention_that_is_written_out_is_told_by_its_implementation(self):
        expect(self, golden.typed_of(RUN, {**ARGUMENTS, "--transformer-impl": "local"}), attention="eager")
        expect(self, golden.typed_of(RUN, {**ARGUMENTS, "--attention-backend": "unfused"}), attention="eager")

    def test_what_columns_cannot_say_is_left_out_with_a_reason(self):
        self.assertEqual(golden.left_out(RUN, ARGUMENTS), "")
        self.assertIn("reinforcement", golden.left_out(RUN, {**ARGUMENTS, "--perform-rl-step": True}))
        self.assertIn("fp32", golden.left_out(RUN, {**ARGUMENTS, "--bf16": False}))
        few = {**RUN, "iteration_points": "2"}
        self.assertIn("steady", golden.left_out({**few, "iteration_time_min_s": "1.5"}, ARGUMENTS))
        self.assertEqual(golden.left_out(few | {"iteration_time_min_s": "1.99"}, ARGUMENTS), "")


if __name__ == "__main__":
    unittest.main()
